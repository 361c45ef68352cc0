"""Random words that are a function of seeds and counters alone, and the numbers made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.native import at, cuda, kernel, stride, written

WORD = 0xFFFFFFFF
LANES = 256
GROUP = 4 * LANES
AT_ONCE = 64  # groups: as much as a cache holds


@dataclass(frozen=True)
class Stream:
    """A sequence of random words for each of K members: Philox's key is the member's seed, its counter the rest.

    counter = (index, step, number): index from 0 within the stream, `number` tells the streams of one step apart.
    """

    seeds: Tensor  # [K] int64
    step: int | Tensor = 0
    number: int = 0

    @property
    def high(self) -> int | Tensor:
        """The counter's upper half."""
        return self.step + (self.number << 32)

    def other(self, number: int) -> Stream:
        """The same members and step, another number."""
        return Stream(self.seeds, self.step, number)

    def of(self, members: slice) -> Stream:
        """The streams of some members."""
        return Stream(self.seeds[members], self.step, self.number)


def words(seed: int | Tensor, counter: Tensor, high: Tensor | int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four 32-bit words, as int64, that Philox4x32-10 makes of a 64-bit seed and a counter below 2⁶³.

    `high` is the counter's upper half, 64 bits more. Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3.
    """
    upper = torch.as_tensor(high, device=counter.device).expand_as(counter)
    a, b, c, d = counter & WORD, counter >> 32, upper & WORD, upper >> 32
    k0, k1 = seed & WORD, seed >> 32 & WORD
    for _ in range(10):
        # Products wrap at 64 bits, which leaves both halves right. What is only a factor of an exclusive or keeps
        # whatever lies above its 32 bits: the next mask removes it.
        p, q = a.mul_(0xD2511F53), c.mul_(0xCD9E8D57)
        a, c = (q >> 32).bitwise_xor_(b).bitwise_xor_(k0).bitwise_and_(WORD), (p >> 32).bitwise_xor_(d)
        c.bitwise_xor_(k1).bitwise_and_(WORD)
        b, d = q, p
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return a, b & WORD, c, d & WORD


def box_muller(radius: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Two independent standard normals from two 32-bit words.

    z = √(−2 log u) · (cos, sin)(2πv). Box & Muller (1958), A note on the generation of random normal deviates.
    """
    length = (radius >> 1).float().add_(0.5).mul_(2.0**-31).log_().mul_(2).abs_().sqrt_()
    turn = (angle - ((angle >> 31) << 32)).float().mul_(math.pi * 2.0**-31)
    return length * turn.cos(), length * turn.sin()


def fill_normals(out: Tensor, stream: Stream, start: int = 0, sign: float = 1.0) -> None:
    """Numbers start, start + 1, … of each member's stream of standard normals, times `sign`, into rows [K, n].

    They come in groups of 1,024, four rows of 256: lane l of group g is at counter 256 g + l, whose words 0 and 1 make
    the numbers in rows 0 and 1, words 2 and 3 those in rows 2 and 3. So vector units of any width write in order.
    Whatever the dtype, the numbers are those of float32.
    """
    members, n = out.shape
    on_gpu = cuda.kernel("normals", out)
    if on_gpu is not None:
        on_gpu[(cuda.groups(start, n), members)](*_told(stream), start, n, sign, stride(out), out)
        return
    compiled = None if isinstance(stream.step, Tensor) else kernel("doxa_normals", out)
    if compiled is not None:
        compiled(members, at(stream.seeds), stream.high, start, n, sign, stride(out), at(out))
        written(out)
        return
    if out.dtype != torch.float32:
        out.copy_(_single(fill_normals, out, stream, start, sign))
        return
    for first, groups in _stretches(start, start + n, GROUP, out):
        a, b, c, d = _groups(stream, first, groups, out.device)
        rows = torch.stack([*box_muller(a, b), *box_muller(c, d)], 2).reshape(members, -1)
        low, high = max(first * GROUP, start), min((first + groups) * GROUP, start + n)
        part = rows[:, low - first * GROUP : high - first * GROUP]
        out[:, low - start : high - start] = part * sign


def fill_signs(out: Tensor, stream: Stream) -> None:
    """The first n signs ±1 of each member's stream into rows [K, n]: a bit each, 128 a counter."""
    members, n = out.shape
    on_gpu = cuda.kernel("signs", out)
    if on_gpu is not None:
        on_gpu[(cuda.groups(0, n, 32 * GROUP), 32, members)](*_told(stream), n, stride(out), out)
        return
    compiled = None if isinstance(stream.step, Tensor) else kernel("doxa_signs", out)
    if compiled is not None:
        compiled(members, at(stream.seeds), stream.high, n, stride(out), at(out))
        written(out)
        return
    if out.dtype != torch.float32:
        out.copy_(_single(fill_signs, out, stream))
        return
    bits = torch.arange(32, device=out.device)[:, None]
    for first, groups in _stretches(0, n, 32 * GROUP, out):
        found = torch.stack(_groups(stream, first, groups, out.device), 2)
        set_ = (found.reshape(members, groups, 1, GROUP) >> bits & 1).reshape(members, -1)
        low, high = first * 32 * GROUP, min((first + groups) * 32 * GROUP, n)
        out[:, low:high] = (1 - 2 * set_[:, : high - low]).to(out.dtype)


def fill_kept(out: Tensor, stream: Stream, rate: float) -> None:
    """1/(1 − rate) where a channel stays and 0 where it is dropped, from each member's stream, into rows [K, n]."""
    members, n = out.shape
    threshold, value = min(round(rate * 2**32), WORD), 1 / (1 - rate)
    on_gpu = cuda.kernel("kept", out)
    if on_gpu is not None:
        on_gpu[(cuda.groups(0, n), members)](*_told(stream), n, threshold, value, stride(out), out)
        return
    compiled = None if isinstance(stream.step, Tensor) else kernel("doxa_kept", out)
    if compiled is not None:
        compiled(members, at(stream.seeds), stream.high, n, threshold, value, stride(out), at(out))
        written(out)
        return
    if out.dtype != torch.float32:
        out.copy_(_single(fill_kept, out, stream, rate))
        return
    for first, groups in _stretches(0, n, GROUP, out):
        found = torch.stack(_groups(stream, first, groups, out.device), 2).reshape(members, -1)
        low, high = first * GROUP, min((first + groups) * GROUP, n)
        out[:, low:high] = (found[:, : high - low] >= threshold).to(out.dtype) * value


def order(stream: Stream, rows: int) -> Tensor:
    """A random order of the rows for each member [K, rows]: by the first two words of as many counters."""
    counter = torch.arange(rows, device=stream.seeds.device).expand(len(stream.seeds), rows)
    a, b, _, _ = words(stream.seeds[:, None], counter, stream.high)
    return ((a << 31) + (b >> 1)).argsort(dim=1, stable=True)


def _single(fill: Callable[..., None], out: Tensor, stream: Stream, *more: float) -> Tensor:
    """The same numbers in float32, in which they are made whatever the dtype."""
    made = torch.empty(out.shape, device=out.device)
    fill(made, stream, *more)
    return made


def _told(stream: Stream) -> tuple[Tensor, Tensor, int]:
    """A stream as the Triton kernels take it."""
    return stream.seeds, cuda.step_of(stream.step, stream.seeds.device), stream.number


def _stretches(start: int, stop: int, size: int, like: Tensor) -> list[tuple[int, int]]:
    """First group and number of groups of every stretch that is worked through at once."""
    most = AT_ONCE if like.device.type == "cpu" else 1 << 14
    first, last = start // size, -(-stop // size)
    return [(low, min(most, last - low)) for low in range(first, last, most)]


def _groups(stream: Stream, first: int, groups: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four words of every lane of some groups, each [K, groups, LANES]."""
    counter = torch.arange(first * LANES, (first + groups) * LANES, device=device)
    found = words(stream.seeds[:, None], counter.expand(len(stream.seeds), -1), stream.high)
    a, b, c, d = (w.view(len(stream.seeds), groups, LANES) for w in found)
    return a, b, c, d
