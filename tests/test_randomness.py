"""Random numbers: normal to the tails, a function of their key alone, and independent of each other."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from doxa.random.keys import fill_normal, generator, isolated_rng, normal, reseed, seed_of
from doxa.random.philox import Stream, fill_dropout_mask, fill_normals, fill_signs, fill_uniform, random_order

SINGLE, DOUBLE = torch.zeros(1), torch.zeros(1).double()
MANY = 2_000_000


@functools.cache
def many_normals(key: str) -> Tensor:
    return normal(MANY, (0, key), SINGLE)


def test_moments_are_those_of_a_normal() -> None:
    """Each within five standard errors: of z, z², z³ and z⁴ over n numbers these are √(1, 2, 15, 96)/√n."""
    z = many_normals("a").double()
    for power, truth, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(float(z.pow(power).mean()) - truth) < 5 * math.sqrt(variance / MANY)


def test_tails_are_as_heavy_as_they_should_be() -> None:
    z = many_normals("a").abs()
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
    rows = many_normals("a")[: MANY // 1024 * 1024].double().reshape(-1, 2, 2, 256)
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
    z = many_normals("a").double()
    for f in (lambda z: z, torch.square):
        assert abs(correlation(f(z[:-lag]), f(z[lag:]))) < 5 / math.sqrt(MANY - lag)


def test_keys_that_are_alike_have_streams_that_are_not() -> None:
    """Also no key is another one's stream, shifted."""
    keys = [(0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, "0"), (0, "step", 1), (0, "step", 2), (0, "step", 11)]
    streams = torch.stack([normal(100_000, key, SINGLE) for key in keys]).double()
    for f in (lambda z: z, torch.square):
        correlations = torch.corrcoef(f(streams)) - torch.eye(len(keys))
        assert float(correlations.abs().max()) < 5.5 / math.sqrt(100_000)
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
def test_other_dtypes_have_the_same_numbers(like: Tensor) -> None:
    single = fill_normal(torch.empty(1000), (1,), 77, -1.0)
    assert torch.equal(fill_normal(like.new_empty(1000), (1,), 77, -1.0), single.to(like.dtype))


SEEDS = torch.tensor([seed_of((k, "member")) for k in range(3)])


def test_members_steps_and_numbers_have_streams_of_their_own() -> None:
    """Neighbours in every one of them, for normals, signs and what is kept."""
    fills = {fill_normals: 1.0, fill_signs: 1.0, functools.partial(fill_dropout_mask, rate=0.5): 1.0}
    for fill in fills:
        rows = []
        for step in (0, 1, 2, 2**31):
            for number in (0, 1, 2, 1 << 16):
                out = torch.empty(3, 20_000)
                fill(out, Stream(SEEDS, step, number))
                rows.append(out)
        streams = torch.cat(rows).double()
        correlations = torch.corrcoef(streams) - torch.eye(len(streams))
        assert float(correlations.abs().max()) < 5.5 / math.sqrt(20_000)


def test_a_member_s_numbers_do_not_depend_on_its_company() -> None:
    for fill in (fill_normals, fill_signs, functools.partial(fill_dropout_mask, rate=0.3)):
        all_members = torch.empty(3, 5000)
        fill(all_members, Stream(SEEDS, 4, 9))
        for k in range(3):
            one_member = torch.empty(1, 5000)
            fill(one_member, Stream(SEEDS[k : k + 1], 4, 9))
            assert torch.equal(one_member[0], all_members[k])
    both = random_order(Stream(SEEDS, 4, 9), 100)
    assert torch.equal(random_order(Stream(SEEDS[1:2], 4, 9), 100)[0], both[1])


def test_orders_are_permutations_in_which_every_row_is_anywhere() -> None:
    orders = torch.cat([random_order(Stream(SEEDS, epoch), 10) for epoch in range(4000)])
    assert torch.equal(orders.sort(1).values, torch.arange(10).expand(12_000, 10))
    counts = torch.stack([torch.bincount(orders[:, place], minlength=10) for place in range(10)]).double()
    assert scipy.stats.chisquare(counts.flatten().numpy()).pvalue > 1e-4
    pairs = torch.bincount(orders[:, 0] * 10 + orders[:, 1], minlength=100).double()
    pairs = pairs[~torch.eye(10, dtype=torch.bool).flatten()]
    assert scipy.stats.chisquare(pairs.numpy()).pvalue > 1e-4
    assert random_order(Stream(SEEDS[:1]), 70_000).unique().numel() == 70_000


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_channels_stay_as_often_as_they_should(rate: float) -> None:
    out = torch.empty(2, 200_000)
    fill_dropout_mask(out, Stream(SEEDS[:2], 1, 2), rate)
    assert set(out.unique().tolist()) <= {0.0, float(np.float32(1 / (1 - rate)))}
    share = (out > 0).double().mean(1)
    assert float((share - (1 - rate)).abs().max()) <= 5 * math.sqrt(rate * (1 - rate) / 200_000)


def test_uniform_numbers_are_uniform_and_meet_no_end() -> None:
    out = torch.empty(2, 200_000)
    fill_uniform(out, Stream(SEEDS[:2], 1, 2))
    for row in out:
        assert scipy.stats.kstest(row.double().numpy(), "uniform").pvalue > 1e-4
    assert 0 < float(out.min()) < 1e-4
    assert 1 - 1e-4 < float(out.max()) < 1
    assert abs(correlation(out[0].double(), out[1].double())) < 5 / math.sqrt(200_000)
    assert abs(correlation(out[0, 1:].double(), out[0, :-1].double())) < 5 / math.sqrt(200_000)


@pytest.mark.parametrize("length", [0, 1, 1023, 1025, 70_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform_numbers_do_not_depend_on_company_length_or_dtype(length: int, dtype: torch.dtype) -> None:
    long, short = torch.empty(3, 70_001), torch.zeros(1, length + 1, dtype=dtype)
    fill_uniform(long, Stream(SEEDS, 4, 9))
    fill_uniform(short[:, :length], Stream(SEEDS[1:2], 4, 9))
    assert torch.equal(short[0, :length], long[1, :length].to(dtype))
    assert float(short[0, length]) == 0, "nothing outside is written"


def test_the_number_of_threads_changes_no_number() -> None:
    threads = torch.get_num_threads()
    try:
        numbers_by_thread_count = []
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            numbers_by_thread_count.append([normal(size, (8,), SINGLE) for size in (1000, 100_001, 1_000_003)])
    finally:
        torch.set_num_threads(threads)
    for one, two, three in zip(*numbers_by_thread_count, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


def test_signs_are_balanced_and_independent() -> None:
    out = torch.empty(1, 803_000)
    fill_signs(out, Stream(SEEDS[:1], 7, 3))
    signs = out.view(1000, 803)
    assert set(signs.unique().tolist()) == {-1.0, 1.0}
    z = signs.double().flatten()
    assert abs(float(z.mean())) < 5 / math.sqrt(len(z))
    # 32 come from one word, a row of 1,024 apart: no two may go together, nor may columns or rows.
    for lag in (*range(1, 17), 256, 512, 803, 1024, 2048, 31 * 1024, 32 * 1024):
        assert abs(float((z[:-lag] * z[lag:]).mean())) < 5 / math.sqrt(len(z) - lag)
    for axis in (0, 1):
        means = signs.double().mean(axis)
        assert float(means.abs().max()) < 5.5 / math.sqrt(signs.shape[axis])
    # Three at a time.
    assert abs(float((z[:-2] * z[1:-1] * z[2:]).mean())) < 5 / math.sqrt(len(z))


@pytest.mark.parametrize("length", [0, 1, 7, 1024, 1025, 32 * 1024, 32 * 1024 + 1])
def test_signs_have_any_length_and_dtype(length: int) -> None:
    for like in (SINGLE, DOUBLE, SINGLE.bfloat16()):
        out = like.new_zeros(3, length + 1)
        fill_signs(out[:, :length], Stream(SEEDS))
        assert bool((out[:, :length].abs() == 1).all())
        assert not out[:, length].any(), "nothing outside is written"


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
    with isolated_rng(torch.device("cpu")):
        reseed((1, "inside"))
        inside = torch.randn(5)
    assert torch.equal(torch.randn(5), expected)
    with isolated_rng(torch.device("cpu")):
        reseed((1, "inside"))
        assert torch.equal(torch.randn(5), inside)
    assert torch.equal(torch.randn(5, generator=generator((1, "inside"))), inside)
