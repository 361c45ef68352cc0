"""Every random number is a pure function of a key, so that runs repeat, resume and split exactly.

A key is a tuple of numbers and words, hashed to a generator's seed. Adding an index to a seed is never done:
neighbouring seeds would be shifted copies of one stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from doxa.random import streams
from doxa.random.philox import Stream, fill_normals

Key = tuple[int | str, ...]


def seed_of(key: Key) -> int:
    """The 63-bit seed that a key stands for."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big") >> 1


def generator(key: Key, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator on `device`, seeded by the key."""
    return torch.Generator(device=device).manual_seed(seed_of(key))


def stream_of(key: Key, device: torch.device | str = "cpu") -> Stream:
    """The key's own stream of random words, for one member."""
    return Stream(torch.tensor([seed_of(key)], device=device), number=streams.DRAW)


def fill_normal(out: Tensor, key: Key, start: int = 0, sign: float = 1.0) -> Tensor:
    """Numbers start, start + 1, … of the key's stream of standard normals, times `sign`, written to a vector."""
    fill_normals(out[None], stream_of(key, out.device), start, sign)
    return out


def normal(size: int, key: Key, like: Tensor) -> Tensor:
    """`size` standard normal numbers with the dtype and device of `like`."""
    return fill_normal(torch.empty(size, dtype=like.dtype, device=like.device), key)


@contextmanager
def isolated_rng(device: torch.device) -> Iterator[None]:
    """Leave the caller's global generators as they were, whatever is drawn inside."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


def reseed(key: Key, device: torch.device | None = None) -> None:
    """Put torch's own generators at the start of the key's stream: layers such as nn.Dropout draw from them."""
    # torch.manual_seed would do, but takes a millisecond where there is no GPU.
    torch.default_generator.manual_seed(seed_of(key))
    if device is not None and device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed_of(key))
