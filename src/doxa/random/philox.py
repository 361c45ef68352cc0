"""Random words that are a function of seeds and counters alone, and the numbers made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa.kernels import cuda, kernel, mark_written, pointer, stride

WORD_MASK = 0xFFFFFFFF
LANES = 256
GROUP = 4 * LANES
GROUPS_AT_ONCE = 64  # groups: as much as a cache holds
THREADS_PAY = 4 * GROUPS_AT_ONCE  # groups

# Both multipliers, and what is added to both halves of the key after each of the ten rounds.
FACTORS, STEPS, ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10


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

    def with_number(self, number: int) -> Stream:
        """The same members and step, another number."""
        return Stream(self.seeds, self.step, number)

    def select_members(self, members: slice) -> Stream:
        """The streams of some members."""
        return Stream(self.seeds[members], self.step, self.number)


def philox_words(seed: int | Tensor, counter: Tensor, high: Tensor | int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four 32-bit words, as int64, that Philox4x32-10 makes of a 64-bit seed and a counter below 2⁶³.

    `high` is the counter's upper half, 64 bits more. Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3.
    """
    upper = torch.as_tensor(high, device=counter.device).expand_as(counter)
    a, b, c, d = counter & WORD_MASK, counter >> 32, upper & WORD_MASK, upper >> 32
    k0, k1 = seed & WORD_MASK, seed >> 32 & WORD_MASK
    for _ in range(ROUNDS):
        # Products wrap at 64 bits, which leaves both halves right. What is only a factor of an exclusive or keeps
        # whatever lies above its 32 bits: the next mask removes it.
        p, q = a.mul_(FACTORS[0]), c.mul_(FACTORS[1])
        a, c = (q >> 32).bitwise_xor_(b).bitwise_xor_(k0).bitwise_and_(WORD_MASK), (p >> 32).bitwise_xor_(d)
        c.bitwise_xor_(k1).bitwise_and_(WORD_MASK)
        b, d = q, p
        k0, k1 = (k0 + STEPS[0]) & WORD_MASK, (k1 + STEPS[1]) & WORD_MASK
    return a, b & WORD_MASK, c, d & WORD_MASK


class NumpyPhilox:
    """The same words in NumPy, whose whole numbers are twice as fast as torch's: for a CPU without kernels."""

    def __init__(self, groups: int) -> None:
        self.scratch = np.empty((5, groups * LANES), np.uint64)
        self.words = np.empty((4, groups * LANES), np.uint32)

    def fill(self, seed: int, high: int, first: int, groups: int) -> Any:
        """The words of every lane of some groups, uint32 [4, lanes]."""
        a, b, c, d, spare = self.scratch[:, : groups * LANES]
        a[:] = np.arange(first * LANES, (first + groups) * LANES, dtype=np.uint64)
        np.right_shift(a, 32, out=b)
        a &= WORD_MASK
        c[:], d[:] = high & WORD_MASK, high >> 32 & WORD_MASK
        k0, k1 = seed & WORD_MASK, seed >> 32 & WORD_MASK
        for _ in range(ROUNDS):
            a *= FACTORS[0]
            c *= FACTORS[1]
            for product, mixed, key in ((c, b, k0), (a, d, k1)):
                np.right_shift(product, 32, out=spare)
                mixed ^= spare
                mixed ^= key
                mixed &= WORD_MASK
            a, b, c, d = b, c, d, a
            k0, k1 = (k0 + STEPS[0]) & WORD_MASK, (k1 + STEPS[1]) & WORD_MASK
        lane_words = self.words[:, : groups * LANES]
        for row, word in zip(lane_words, (a, b, c, d), strict=True):
            row[:] = word  # the lower half
        return lane_words


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
        on_gpu[(cuda.group_count(start, n), members)](*_triton_arguments(stream), start, n, sign, stride(out), out)
        return
    compiled = None if isinstance(stream.step, Tensor) else kernel("doxa_normals", out)
    if compiled is not None:
        compiled(members, pointer(stream.seeds), stream.high, start, n, sign, stride(out), pointer(out))
        mark_written(out)
        return
    if out.dtype != torch.float32:
        out.copy_(_fill_in_float32(fill_normals, out, stream, start, sign))
        return
    if _can_use_numpy(out):
        rows, high = out.detach(), int(stream.high)
        jobs = [
            (seed, high, start, sign, row, stretch)
            for seed, row in zip(stream.seeds.tolist(), rows, strict=True)
            for stretch in _group_ranges(start, start + n, GROUP, out)
        ]
        _fill_in_threads(jobs, n * members >= THREADS_PAY * GROUP)
        mark_written(out)
        return
    for first, groups in _group_ranges(start, start + n, GROUP, out):
        a, b, c, d = _group_words(stream, first, groups, out.device)
        rows = torch.stack([*box_muller(a, b), *box_muller(c, d)], 2).reshape(members, -1)
        low, high = max(first * GROUP, start), min((first + groups) * GROUP, start + n)
        part = rows[:, low - first * GROUP : high - first * GROUP]
        out[:, low - start : high - start] = part * sign


def fill_signs(out: Tensor, stream: Stream) -> None:
    """The first n signs ±1 of each member's stream into rows [K, n]: a bit each, 128 a counter."""
    members, n = out.shape
    on_gpu = cuda.kernel("signs", out)
    if on_gpu is not None:
        on_gpu[(cuda.group_count(0, n, 32 * GROUP), 32, members)](*_triton_arguments(stream), n, stride(out), out)
        return
    compiled = None if isinstance(stream.step, Tensor) else kernel("doxa_signs", out)
    if compiled is not None:
        compiled(members, pointer(stream.seeds), stream.high, n, stride(out), pointer(out))
        mark_written(out)
        return
    if out.dtype != torch.float32:
        out.copy_(_fill_in_float32(fill_signs, out, stream))
        return
    bits = torch.arange(32, device=out.device)[:, None]
    for first, groups in _group_ranges(0, n, 32 * GROUP, out):
        lane_words = torch.stack(_group_words(stream, first, groups, out.device), 2)
        bit_is_set = (lane_words.reshape(members, groups, 1, GROUP) >> bits & 1).reshape(members, -1)
        low, high = first * 32 * GROUP, min((first + groups) * 32 * GROUP, n)
        out[:, low:high] = (1 - 2 * bit_is_set[:, : high - low]).to(out.dtype)


def fill_dropout_mask(out: Tensor, stream: Stream, rate: float) -> None:
    """1/(1 − rate) where a channel stays and 0 where it is dropped, from each member's stream, into rows [K, n]."""
    members, n = out.shape
    threshold, keep_scale = min(round(rate * 2**32), WORD_MASK), 1 / (1 - rate)
    on_gpu = cuda.kernel("kept", out)
    if on_gpu is not None:
        on_gpu[(cuda.group_count(0, n), members)](
            *_triton_arguments(stream), n, threshold, keep_scale, stride(out), out
        )
        return
    compiled = None if isinstance(stream.step, Tensor) else kernel("doxa_kept", out)
    if compiled is not None:
        compiled(members, pointer(stream.seeds), stream.high, n, threshold, keep_scale, stride(out), pointer(out))
        mark_written(out)
        return
    if out.dtype != torch.float32:
        out.copy_(_fill_in_float32(fill_dropout_mask, out, stream, rate))
        return
    for span, lane_words in _stream_words(stream, n, out):
        out[:, span] = (lane_words >= threshold).to(out.dtype) * keep_scale


def fill_uniform(out: Tensor, stream: Stream) -> None:
    """The first n numbers of each member's stream, uniform in (0, 1), into rows [K, n]: a word each.

    Middles of 2²³ equal stretches, so that neither end is met; the same on every device and in every dtype that holds
    them.
    """
    for span, lane_words in _stream_words(stream, out.shape[1], out):
        out[:, span] = (lane_words >> 9).float().add_(0.5).mul_(2.0**-23).to(out.dtype)


def random_order(stream: Stream, rows: int) -> Tensor:
    """A random order of the rows for each member [K, rows]: by the first two words of as many counters."""
    counter = torch.arange(rows, device=stream.seeds.device).expand(len(stream.seeds), rows)
    a, b, _, _ = philox_words(stream.seeds[:, None], counter, stream.high)
    return ((a << 31) + (b >> 1)).argsort(dim=1, stable=True)


def _can_use_numpy(out: Tensor) -> bool:
    """Whether NumPy can work on the same memory."""
    transformed = torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None
    return out.device.type == "cpu" and not transformed


Job = tuple[int, int, int, float, Tensor, tuple[int, int]]


def _fill_in_threads(jobs: list[Job], threads_pay: bool) -> None:
    """Fill stretches of rows with normals, on as many threads as torch has."""
    threads = min(torch.get_num_threads(), len(jobs)) if threads_pay else 1
    if threads == 1:
        _fill_jobs(jobs)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(_fill_jobs, (jobs[k::threads] for k in range(threads))))


def _fill_jobs(jobs: list[Job]) -> None:
    """Box and Muller on the lanes of each stretch, in the same few buffers."""
    most_groups = max((groups for *_, (_, groups) in jobs), default=0)
    lanes, scratch = NumpyPhilox(most_groups), torch.empty(most_groups * GROUP)
    lengths, turns = torch.empty(2, most_groups * LANES), torch.empty(2, most_groups * LANES)
    with torch.no_grad():
        for seed, high, start, sign, row, (first, groups) in jobs:
            count = groups * LANES
            lane_words = lanes.fill(seed, high, first, groups)
            lane_words[::2] >>= 1
            signed = torch.from_numpy(lane_words.view(np.int32))
            length, turn = lengths[:, :count], turns[:, :count]
            length.copy_(signed[::2]).add_(0.5).mul_(2.0**-31).log_().mul_(-2).sqrt_().mul_(sign)
            turn.copy_(signed[1::2]).mul_(math.pi * 2.0**-31)
            first_index, stop = max(first * GROUP, start), min((first + groups) * GROUP, start + len(row))
            target = row[first_index - start : stop - start]
            whole = target if len(target) == groups * GROUP and target.is_contiguous() else scratch[: groups * GROUP]
            pairs = whole.view(groups, 2, 2, LANES).permute(2, 1, 0, 3)
            shape = 2, groups, LANES
            for out, wave in zip(pairs, (torch.cos, torch.sin), strict=True):
                torch.mul(wave(turn).view(shape), length.view(shape), out=out)
            if whole is not target:
                target.copy_(whole[first_index - first * GROUP : stop - first * GROUP])


def _fill_in_float32(fill: Callable[..., None], out: Tensor, stream: Stream, *arguments: float) -> Tensor:
    """The same numbers in float32, in which they are made whatever the dtype."""
    in_float32 = torch.empty(out.shape, device=out.device)
    fill(in_float32, stream, *arguments)
    return in_float32


def _triton_arguments(stream: Stream) -> tuple[Tensor, Tensor, int]:
    """A stream as the Triton kernels take it."""
    return stream.seeds, cuda.step_tensor(stream.step, stream.seeds.device), stream.number


def _group_ranges(start: int, stop: int, size: int, like: Tensor) -> list[tuple[int, int]]:
    """First group and number of groups of every stretch that is worked through at once."""
    groups_at_once = GROUPS_AT_ONCE if like.device.type == "cpu" else 1 << 14
    first, last = start // size, -(-stop // size)
    return [(low, min(groups_at_once, last - low)) for low in range(first, last, groups_at_once)]


def _stream_words(stream: Stream, n: int, like: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """The first n words of each member's stream [K, ·], stretch by stretch."""
    for first, groups in _group_ranges(0, n, GROUP, like):
        lane_words = torch.stack(_group_words(stream, first, groups, like.device), 2).reshape(len(stream.seeds), -1)
        low, high = first * GROUP, min((first + groups) * GROUP, n)
        yield slice(low, high), lane_words[:, : high - low]


def _group_words(
    stream: Stream, first: int, groups: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four words of every lane of some groups, each [K, groups, LANES]."""
    counter = torch.arange(first * LANES, (first + groups) * LANES, device=device)
    lane_words = philox_words(stream.seeds[:, None], counter.expand(len(stream.seeds), -1), stream.high)
    a, b, c, d = (w.view(len(stream.seeds), groups, LANES) for w in lane_words)
    return a, b, c, d
