"""Random numbers: normal to the tails, a function of their key alone, and independent of each other."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from doxa.randomness import fill_normal, generator, isolated, normal, reseed, seed_of, signs

SINGLE, DOUBLE = torch.zeros(1), torch.zeros(1).double()
MANY = 2_000_000


@functools.cache
def many(key: str) -> Tensor:
    return normal(MANY, (0, key), SINGLE)


def test_moments_are_those_of_a_normal() -> None:
    """Each within five standard errors: of z, z², z³ and z⁴ over n numbers these are √(1, 2, 15, 96)/√n."""
    z = many("a").double()
    for power, truth, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(float(z.pow(power).mean()) - truth) < 5 * math.sqrt(variance / MANY)


def test_tails_are_as_heavy_as_they_should_be() -> None:
    z = many("a").abs()
    for edge in (1, 2, 3, 4, 4.75):
        expected = MANY * 2 * scipy.stats.norm.sf(edge)
        assert abs(int((z > edge).sum()) - expected) < 5 * math.sqrt(expected)
    assert bool(z.isfinite().all())
    assert 4.8 < float(z.max()) < 6.7


@pytest.mark.parametrize("like", [SINGLE, DOUBLE])
def test_kolmogorov_and_smirnov_see_no_difference(like: Tensor) -> None:
    for k in range(4):
        z = normal(200_000, (3, "ks", k), like).numpy()
        assert scipy.stats.kstest(z, "norm").pvalue > 1e-4


def test_both_halves_are_normal_and_independent() -> None:
    """Box and Muller's cosine and sine share a radius: their squares must not be correlated."""
    rows = many("a")[: MANY // 1024 * 1024].double().reshape(-1, 2, 2, 256)
    first, second = rows[:, :, 0].flatten(), rows[:, :, 1].flatten()
    assert scipy.stats.kstest(first[:200_000].numpy(), "norm").pvalue > 1e-4
    assert scipy.stats.kstest(second[:200_000].numpy(), "norm").pvalue > 1e-4
    for f in (lambda z: z, torch.square, torch.abs, lambda z: (z > 3).double()):
        assert abs(correlation(f(first), f(second))) < 5 / math.sqrt(len(first))


def correlation(a: Tensor, b: Tensor) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).mean() / (a.square().mean() * b.square().mean()).sqrt())


@pytest.mark.parametrize("lag", [1, 2, 3, 64, 255, 256, 257, 512, 768, 1024, MANY // 2])
def test_neighbours_at_every_lag_are_independent(lag: int) -> None:
    z = many("a").double()
    for f in (lambda z: z, torch.square):
        assert abs(correlation(f(z[:-lag]), f(z[lag:]))) < 5 / math.sqrt(MANY - lag)


def test_keys_that_are_alike_have_streams_that_are_not() -> None:
    """Also no key is another one's stream, shifted."""
    keys = [(0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, "0"), (0, "step", 1), (0, "step", 2), (0, "step", 11)]
    streams = torch.stack([normal(100_000, key, SINGLE) for key in keys]).double()
    for f in (lambda z: z, torch.square):
        found = torch.corrcoef(f(streams)) - torch.eye(len(keys))
        assert float(found.abs().max()) < 5.5 / math.sqrt(100_000)
    spectrum = torch.fft.rfft(streams)
    for i in range(len(keys)):
        for j in range(i):
            shifted = torch.fft.irfft(spectrum[i] * spectrum[j].conj()) / 100_000  # correlation at every lag
            assert float(shifted.abs().max()) < 7 / math.sqrt(100_000)


@pytest.mark.parametrize("like", [SINGLE, DOUBLE])
def test_a_key_always_gives_the_same_numbers(like: Tensor) -> None:
    expected = normal(1001, (5, "x"), like)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = torch.get_rng_state()
    assert torch.equal(normal(1001, (5, "x"), like), expected)
    assert torch.equal(torch.get_rng_state(), before), "no other generator is touched"
    assert expected.dtype == like.dtype
    assert not torch.equal(normal(1001, (5, "y"), like), expected)


@pytest.mark.parametrize("like", [SINGLE, DOUBLE])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 7, 8, 9, 16, 17, 63, 65, 1001])
def test_odd_and_tiny_lengths_are_filled_whole(size: int, like: Tensor) -> None:
    for k in range(5):
        z = normal(size, (k,), like)
        assert z.shape == (size,)
        assert bool(z.isfinite().all())
        assert len(z.unique()) == size
        assert float(z.abs().max()) < 6 if size else True


@pytest.mark.parametrize("size", [1, 2, 3])
def test_short_streams_are_normal_over_their_keys(size: int) -> None:
    z = torch.cat([normal(size, ("short", k), SINGLE) for k in range(3000)])
    assert scipy.stats.kstest(z.numpy(), "norm").pvalue > 1e-4


def test_any_part_of_a_stream_can_be_made_by_itself() -> None:
    """To the bit: chunks of any length, from anywhere."""
    whole = normal(5000, (1,), SINGLE)
    for start, count in ((0, 5000), (0, 1), (1, 1), (1023, 2), (1000, 1001), (1024, 1024), (4999, 1), (2500, 0)):
        part = torch.zeros(count + 2)
        fill_normal(part[1:-1], (1,), start)
        assert torch.equal(part[1:-1], whole[start : start + count])
        assert float(part[0]) == float(part[-1]) == 0, "nothing outside is written"
    far = fill_normal(torch.empty(100), (1,), 2**45 + 7)
    assert torch.equal(far[50:], fill_normal(torch.empty(50), (1,), 2**45 + 57))
    assert len(torch.cat([whole, far]).unique()) > 5090
    assert torch.equal(fill_normal(torch.empty(77), (1,), 5, -1.0), -whole[5:82])


@pytest.mark.parametrize("like", [DOUBLE, SINGLE.bfloat16()])
def test_other_dtypes_have_a_stream_at_every_start(like: Tensor) -> None:
    first, second = (fill_normal(like.new_empty(1000), (1,), start) for start in (0, 1000))
    assert torch.equal(first, fill_normal(like.new_empty(1000), (1,)))
    assert abs(correlation(first.double(), second.double())) < 5 / math.sqrt(1000)
    assert torch.equal(fill_normal(like.new_empty(1000), (1,), sign=-1.0), -first)


def test_the_number_of_threads_changes_no_number() -> None:
    threads = torch.get_num_threads()
    try:
        found = []
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append([normal(size, (8,), SINGLE) for size in (1000, 100_001, 1_000_003)])
    finally:
        torch.set_num_threads(threads)
    for one, two, three in zip(*found, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


def test_signs_are_balanced_and_independent() -> None:
    with isolated(torch.device("cpu")):
        reseed((0, "signs"))
        found = signs((1000, 803), SINGLE)
    assert found.dtype == torch.float32
    assert set(found.unique().tolist()) == {-1.0, 1.0}
    z = found.double().flatten()
    assert abs(float(z.mean())) < 5 / math.sqrt(len(z))
    # Eight come from one byte: no two of them may go together, nor may columns or rows.
    for lag in (*range(1, 17), 803, 1606):
        assert abs(float((z[:-lag] * z[lag:]).mean())) < 5 / math.sqrt(len(z) - lag)
    for axis in (0, 1):
        means = found.double().mean(axis)
        assert float(means.abs().max()) < 5.5 / math.sqrt(found.shape[axis])
    # Three at a time.
    assert abs(float((z[:-2] * z[1:-1] * z[2:]).mean())) < 5 / math.sqrt(len(z))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (9,), (3, 1, 5), (0,), (2, 0)])
def test_signs_have_any_shape_and_dtype(shape: tuple[int, ...]) -> None:
    for like in (SINGLE, DOUBLE, SINGLE.bfloat16()):
        found = signs(shape, like)
        assert found.shape == shape
        assert found.dtype == like.dtype
        assert bool((found.abs() == 1).all())


def test_keys_that_are_alike_have_other_seeds() -> None:
    keys = [(i,) for i in range(2000)] + [(i, j) for i in range(30) for j in range(30)]
    keys += [(0, "a"), (0, "b"), ("a", 0), ("0",), ("0", "0"), ("0, 0",), (0, "step", 1, 2), (0, "step", 12), (-1,)]
    seeds = [seed_of(key) for key in keys]
    assert len(set(seeds)) == len(keys)
    assert all(0 <= seed < 2**63 for seed in seeds)
    # Not near each other either: the bits of neighbours' seeds agree as often as not.
    bits = np.array([[seed >> b & 1 for b in range(63)] for seed in seeds[:2000]])
    agree = (bits[1:] == bits[:-1]).mean()
    assert abs(agree - 0.5) < 5 * 0.5 / math.sqrt(1999 * 63)
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / math.sqrt(2000 * 63)


def test_a_seed_is_the_same_on_every_machine_and_in_every_version() -> None:
    """A known answer: the first eight bytes of the SHA-256 of "(0, 'step', 1)", less one bit."""
    assert seed_of((0, "step", 1)) == 0x65E3F747EC0ED181 >> 1


def test_a_block_leaves_the_caller_s_generator_alone() -> None:
    torch.manual_seed(4)
    expected = torch.randn(5)
    torch.manual_seed(4)
    with isolated(torch.device("cpu")):
        reseed((1, "inside"))
        inside = torch.randn(5)
    assert torch.equal(torch.randn(5), expected)
    with isolated(torch.device("cpu")):
        reseed((1, "inside"))
        assert torch.equal(torch.randn(5), inside)
    assert torch.equal(torch.randn(5, generator=generator((1, "inside"))), inside)
