"""Where the rows' noise comes from: numbers of a member's streams, one stream for each time it is asked.

What noise a pass wants is known only while it runs, for the net decides which operations there are and how large their
outputs; but in a program of many nets none knows which one it is, and kernels have no memory to write to under vmap. So
a pass is listened to once (`RecordingSource`), the numbers of all nets are made before the pass that counts
(`precompute_noise`) and handed out in the same order (`PrecomputedSource`). A net that runs by itself makes them when
asked (`StreamSource`). The i-th asking has the i-th stream either way: alone or in a fleet, a net meets the same
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.random import streams
from doxa.random.philox import Stream, fill_dropout_mask, fill_normals, fill_signs

Fill = Callable[..., None]


@dataclass(frozen=True)
class NoiseRequest:
    """What one operation of a pass asked for."""

    fill: Fill
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    flips_sign: bool = False  # whether its sign turns round in an antithetic draw: masks and signs have no mirror image

    def rows(self, stream: Stream, sign: float, out: Tensor | None = None) -> Tensor:
        """The numbers of every net [K, *shape]."""
        if out is None:
            out = torch.empty(len(stream.seeds), prod(self.shape), dtype=self.dtype, device=self.device)
        if self.flips_sign:
            self.fill(out, stream, sign=sign)
        else:
            self.fill(out, stream)
        return out.view(-1, *self.shape)


class NoiseSource(Protocol):
    """Random numbers for the rows of a pass."""

    def draw(self, request: NoiseRequest) -> Tensor:
        """Numbers of the shape asked for."""
        ...


@dataclass
class StreamSource:
    """The numbers of one member, made when they are asked for."""

    stream: Stream  # of one member; its number is the first asking's
    sign: float = 1.0
    requests_served: int = 0

    def draw(self, request: NoiseRequest) -> Tensor:
        stream = _stream_of_request(self.stream, self.requests_served)
        self.requests_served += 1
        return request.rows(stream, self.sign)[0]


class RecordingSource:
    """No noise: a note of what is asked for; zeros stand in, and nothing of that pass is kept."""

    def __init__(self) -> None:
        self.requests: list[NoiseRequest] = []

    def draw(self, request: NoiseRequest) -> Tensor:
        self.requests.append(request)
        return torch.zeros(request.shape, dtype=request.dtype, device=request.device)


class PrecomputedSource:
    """Numbers that were made beforehand, handed out in order."""

    def __init__(self, values: Sequence[Tensor]) -> None:
        self.values: Iterator[Tensor] = iter(values)

    def draw(self, request: NoiseRequest) -> Tensor:
        return next(self.values)


def precompute_noise(requests: Sequence[NoiseRequest], draws: Sequence[tuple[Stream, float]]) -> list[Tensor]:
    """What nets will be handed, each [S · K, *shape]: for each draw the numbers that each net would have made alone."""
    values_per_request = []
    for i, request in enumerate(requests):
        nets = len(draws[0][0].seeds)
        out = torch.empty(len(draws) * nets, prod(request.shape), dtype=request.dtype, device=request.device)
        for draw_number, (stream, sign) in enumerate(draws):
            request.rows(_stream_of_request(stream, i), sign, out[draw_number * nets : (draw_number + 1) * nets])
        values_per_request.append(out.view(-1, *request.shape))
    return values_per_request


def _stream_of_request(stream: Stream, request_number: int) -> Stream:
    """Each asking's own stream; beyond the last, the next sample's numbers would come a second time."""
    if request_number >= streams.MAX_ROW_REQUESTS:
        raise BadInput(
            f"one pass of the net asked for rows' noise more than {streams.MAX_ROW_REQUESTS:,} times, and a sample has "
            "no more streams; use noise=shared, or a net that calls fewer layers in a pass"
        )
    return stream.with_number(stream.number + request_number)


def normals(source: NoiseSource, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Independent standard normals; turned round in an antithetic draw."""
    return source.draw(NoiseRequest(fill_normals, shape, like.dtype, like.device, flips_sign=True))


def signs(source: NoiseSource, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Independent ±1."""
    return source.draw(NoiseRequest(fill_signs, shape, like.dtype, like.device))


def dropout_mask(source: NoiseSource, shape: tuple[int, ...], rate: float, like: Tensor) -> Tensor:
    """1/(1 − rate) with probability 1 − rate, else 0."""
    return source.draw(NoiseRequest(partial(fill_dropout_mask, rate=rate), shape, like.dtype, like.device))
