"""Every random number is a pure function of a key, so that runs repeat, resume and split exactly.

A key is a tuple of numbers and words, hashed to a generator's seed. Adding an index to a seed is never done:
neighbouring seeds would be shifted copies of one stream.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

Key = tuple[int | str, ...]

# Numbers drawn at a time: small enough to stay in the processor's cache, large enough for all its threads.
BLOCK = 1 << 19


def seed_of(key: Key) -> int:
    """The 63-bit seed that a key stands for."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big") >> 1


def generator(key: Key, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator on `device`, seeded by the key."""
    return torch.Generator(device=device).manual_seed(seed_of(key))


def fill_normal(out: Tensor, key: Key) -> Tensor:
    """Fill a flat vector with standard normal numbers that depend on the key alone.

    On the CPU: Box & Muller (1958) on the 64-bit words of SFC64 (Doty-Humphrey, 2010), in half the time of torch's own
    generator, whose numbers come one by one.
    """
    if out.device.type != "cpu" or out.dtype != torch.float32:
        return out.normal_(generator=generator(key, out.device))
    bits = np.random.SFC64(seed_of(key))
    for start in range(0, out.numel(), BLOCK):
        _box_muller(out[start : start + BLOCK], bits)
    return out


def _box_muller(out: Tensor, bits: np.random.SFC64) -> None:
    half = (out.numel() + 1) // 2
    words = torch.from_numpy(bits.random_raw(half).view(np.int32))
    # |i| + ½ keeps all 31 bits where they matter: near zero, in the tails.
    radius = words[:half].to(out.dtype).abs_().add_(0.5).mul_(2.0**-31).log_().mul_(-2).clamp_min_(0).sqrt_()
    angle = words[half:].to(out.dtype).mul_(math.pi * 2.0**-31)
    torch.mul(radius, angle.cos(), out=out[:half])
    rest = out.numel() - half
    torch.mul(radius[:rest], angle[:rest].sin_(), out=out[half:])


def normal(size: int, key: Key, like: Tensor) -> Tensor:
    """`size` standard normal numbers with the dtype and device of `like`."""
    return fill_normal(torch.empty(size, dtype=like.dtype, device=like.device), key)


def signs(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Independent ±1 of the given shape from torch's global generator, eight to a random byte."""
    count = 1
    for length in shape:
        count *= length
    bytes_ = torch.randint(0, 256, ((count + 7) // 8, 1), dtype=torch.uint8, device=like.device)
    powers = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=like.device)
    bits = (bytes_ & powers).ne(0).flatten()[:count].reshape(shape)
    return bits.to(like.dtype).mul_(2).sub_(1)


@contextmanager
def isolated(device: torch.device) -> Iterator[None]:
    """Leave the caller's global generators as they were, whatever is drawn inside."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


def reseed(key: Key, device: torch.device | None = None) -> None:
    """Put torch's own generators at the start of the key's stream: layers such as nn.Dropout draw from them."""
    # torch.manual_seed would do, but takes a millisecond where there is no GPU.
    torch.default_generator.manual_seed(seed_of(key))
    if device is not None and device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed_of(key))
