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


def seed_of(key: Key) -> int:
    """The 63-bit seed that a key stands for."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big") >> 1


def generator(key: Key, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator on `device`, seeded by the key."""
    return torch.Generator(device=device).manual_seed(seed_of(key))


class Normals:
    """A stream of standard normal numbers that depends on its key alone.

    On the CPU: Box & Muller (1958) on the 64-bit words of SFC64 (Doty-Humphrey, 2010), in half the time of torch's own
    generator, whose numbers come one by one.
    """

    def __init__(self, key: Key, like: Tensor) -> None:
        ours = like.device.type == "cpu" and like.dtype == torch.float32
        self.words = np.random.SFC64(seed_of(key)) if ours else None
        self.source = None if ours else generator(key, like.device)

    def fill(self, out: Tensor) -> Tensor:
        """The stream's next numbers."""
        if self.words is None:
            return out.normal_(generator=self.source)
        half = (out.numel() + 1) // 2
        uniform = torch.from_numpy(self.words.random_raw(half).view(np.int32)).to(out.dtype)
        radius, angle = uniform[:half].abs_(), uniform[half:].mul_(math.pi * 2.0**-31)
        # |i| + ½ keeps all 31 bits where they matter: near zero, in the tails.
        torch.add(out.new_tensor(2.0**-32), radius, alpha=2.0**-31, out=radius).log_().mul_(-2).sqrt_()
        torch.cos(angle, out=out[:half]).mul_(radius)
        rest = out.numel() - half
        torch.sin(angle[:rest], out=out[half:]).mul_(radius[:rest])
        return out


def normal(size: int, key: Key, like: Tensor) -> Tensor:
    """`size` standard normal numbers with the dtype and device of `like`."""
    return Normals(key, like).fill(torch.empty(size, dtype=like.dtype, device=like.device))


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
