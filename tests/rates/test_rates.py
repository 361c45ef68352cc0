"""Learning rates: known values and refusals. The laws of all of them are in tests/laws."""

from __future__ import annotations

import math

import pytest

from doxa.contracts import Moment
from doxa.errors import BadInput
from doxa.rates import constant, cosine, cyclical, polynomial, step


def rates(schedule, epochs: int = 4, batches: int = 3) -> list[float]:
    return [schedule(Moment(k, epochs * batches, k % batches, batches)) for k in range(epochs * batches)]


def test_constant_is_constant() -> None:
    assert rates(constant(0.1)) == [0.1] * 12


def test_step_falls_after_whole_and_broken_epochs() -> None:
    assert rates(step(0.8, every=2)) == [0.8] * 6 + [0.4] * 6
    assert rates(step(0.8, every=1, factor=0.1)) == pytest.approx([0.8] * 3 + [0.08] * 3 + [0.008] * 3 + [0.0008] * 3)
    assert rates(step(1.0, every=4 / 3), epochs=3) == [1.0] * 4 + [0.5] * 4 + [0.25]
    assert rates(step(1.0, every=1e-9), epochs=1) == [1.0, 0.5, 0.25]


def test_polynomial_halves_where_it_says() -> None:
    values = rates(polynomial(0.8, after=2, power=1.0), epochs=7)
    assert values[0] == 0.8
    assert values[6] == pytest.approx(0.4)
    assert values[18] == pytest.approx(0.2)
    assert rates(polynomial(0.8, power=0.0)) == [0.8] * 12
    with pytest.raises(BadInput, match="power must lie between 0 and 1"):
        polynomial(0.1, power=1.5)


def test_cosine_is_the_formula() -> None:
    values = rates(cosine(0.3, final=0.1), epochs=3)
    assert values == pytest.approx([0.1 + 0.1 * (1 + math.cos(math.pi * k / 8)) for k in range(9)])
    assert (values[0], values[4]) == pytest.approx((0.3, 0.2))


def test_cosine_warms_up_in_a_straight_line() -> None:
    values = rates(cosine(0.4, warmup=1), epochs=3)
    assert values[:4] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert values[3:] == pytest.approx([0.2 * (1 + math.cos(math.pi * k / 5)) for k in range(6)])


def test_cosine_of_one_step_still_learns() -> None:
    assert rates(cosine(0.4), epochs=1, batches=1) == [0.4]


def test_cosine_refuses_a_warm_up_longer_than_the_run() -> None:
    with pytest.raises(BadInput, match="5 epochs takes 15 steps and the run has only 12"):
        rates(cosine(0.4, warmup=5))


def test_cyclical_falls_in_a_straight_line_again_and_again() -> None:
    cycle = [0.9 - 0.8 * t / 6 for t in range(1, 7)]
    assert rates(cyclical(0.9, 0.1, cycle=2)) == pytest.approx(cycle * 2)


def test_cyclical_of_less_than_a_step_is_low() -> None:
    assert rates(cyclical(0.9, 0.1, cycle=0.01)) == [0.1] * 12


@pytest.mark.parametrize(
    "make",
    [
        lambda: constant(0),
        lambda: constant(math.nan),
        lambda: constant("fast"),
        lambda: step(0, 1),
        lambda: step(0.1, 0),
        lambda: step(0.1, 1, factor=0),
        lambda: step(0.1, 1, factor=1.5),
        lambda: cosine(-1),
        lambda: cosine(0.1, final=0.2),
        lambda: cosine(0.1, final=-0.1),
        lambda: cosine(0.1, warmup=-1),
        lambda: cosine(0.1, warmup=math.inf),
        lambda: cyclical(0, 0, 1),
        lambda: cyclical(0.1, 0.2, 1),
        lambda: cyclical(0.1, -0.1, 1),
        lambda: cyclical(0.1, math.nan, 1),
        lambda: cyclical(0.2, 0.1, 0),
    ],
)
def test_refuses_what_makes_no_schedule(make) -> None:
    with pytest.raises(BadInput):
        make()
