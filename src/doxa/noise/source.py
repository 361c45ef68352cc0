"""Where the rows' noise comes from: numbers of a member's streams, one stream for each time it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from doxa.random.philox import Stream, fill_kept, fill_normals, fill_signs

Fill = Callable[..., None]


@dataclass(frozen=True)
class Asked:
    """What one operation of a pass asked for."""

    fill: Fill
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    turns: bool = False  # whether its sign turns round in an antithetic draw

    def rows(self, stream: Stream, sign: float, out: Tensor | None = None) -> Tensor:
        """The numbers of every net [K, *shape]."""
        if out is None:
            out = torch.empty(len(stream.seeds), prod(self.shape), dtype=self.dtype, device=self.device)
        if self.turns:
            self.fill(out, stream, sign=sign)
        else:
            self.fill(out, stream)
        return out.view(-1, *self.shape)


class Source(Protocol):
    """Random numbers for the rows of a pass."""

    def give(self, asked: Asked) -> Tensor:
        """Numbers of the shape asked for."""
        ...


@dataclass
class Alone:
    """The numbers of one member, made when they are asked for."""

    stream: Stream  # of one member; its number is the first asking's
    sign: float = 1.0
    asked: int = 0

    def give(self, asked: Asked) -> Tensor:
        stream = self.stream.other(self.stream.number + self.asked)
        self.asked += 1
        return asked.rows(stream, self.sign)[0]


class Listening:
    """No noise: a note of what is asked for."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def give(self, asked: Asked) -> Tensor:
        self.asked.append(asked)
        return torch.zeros(asked.shape, dtype=asked.dtype, device=asked.device)


class Handed:
    """Numbers that were made beforehand, handed out in order."""

    def __init__(self, made: Sequence[Tensor]) -> None:
        self.made: Iterator[Tensor] = iter(made)

    def give(self, asked: Asked) -> Tensor:
        return next(self.made)


def made(asked: Sequence[Asked], draws: Sequence[tuple[Stream, float]]) -> list[Tensor]:
    """What nets will be handed, each [S · K, *shape]: for each draw the numbers that each net would have made alone."""
    found = []
    for i, a in enumerate(asked):
        nets = len(draws[0][0].seeds)
        out = torch.empty(len(draws) * nets, prod(a.shape), dtype=a.dtype, device=a.device)
        for s, (stream, sign) in enumerate(draws):
            a.rows(stream.other(stream.number + i), sign, out[s * nets : (s + 1) * nets])
        found.append(out.view(-1, *a.shape))
    return found


def normals(source: Source, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Independent standard normals; turned round in an antithetic draw."""
    return source.give(Asked(fill_normals, shape, like.dtype, like.device, turns=True))


def signs(source: Source, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Independent ±1."""
    return source.give(Asked(fill_signs, shape, like.dtype, like.device))


def kept(source: Source, shape: tuple[int, ...], rate: float, like: Tensor) -> Tensor:
    """1/(1 − rate) with probability 1 − rate, else 0."""
    return source.give(Asked(partial(fill_kept, rate=rate), shape, like.dtype, like.device))
