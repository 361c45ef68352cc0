"""Weights on the KL: known values, composition, refusals. The laws of all of them are in tests/laws."""

from __future__ import annotations

import math

import pytest

from doxa.contracts import Moment
from doxa.errors import BadInput
from doxa.kl_weights import annealed, geometric, tempered, uniform


def moment_at(step: int, batches: int = 4, epochs: int = 3) -> Moment:
    return Moment(step, epochs * batches, step % batches, batches)


def test_uniform_is_one() -> None:
    assert [uniform()(moment_at(step)) for step in range(12)] == [1.0] * 12


def test_geometric_is_the_formula_of_the_paper() -> None:
    expected = [4 * 2 ** (4 - i) / (2**4 - 1) for i in (1, 2, 3, 4)]
    assert [geometric()(moment_at(step)) for step in range(12)] == pytest.approx(expected * 3)


def test_geometric_survives_long_epochs() -> None:
    assert geometric()(moment_at(0, batches=100_000)) == pytest.approx(50_000)
    assert geometric()(moment_at(1, batches=100_000)) == pytest.approx(25_000)
    assert geometric()(moment_at(99_999, batches=100_000)) == 0.0


def growth_step_by_step(batches: int) -> float:
    """By how many learning rates Adam moves in an epoch of halving slopes, when it has gone on for long."""
    m = v = moved = 0.0
    epochs = max(3, 15_000 // batches)
    for step in range(1, epochs * batches + 1):
        slope = 0.5 ** ((step - 1) % batches)
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        if step > (epochs - 1) * batches:
            moved += m / (1 - 0.9**step) / math.sqrt(v / (1 - 0.999**step))
    return moved


@pytest.mark.parametrize("batches", [1, 2, 3, 5, 12, 100, 468, 3000])
def test_growth_is_that_of_adam_for_any_number_of_minibatches(batches: int) -> None:
    """One minibatch pays all of the KL: Adam moves by one learning rate an epoch, and not by the root of three."""
    assert geometric().growth(batches) == pytest.approx(growth_step_by_step(batches), rel=0.02)


@pytest.mark.parametrize(("batches", "beta_2"), [(0, 0.999), (-3, 0.999), (2.5, 0.999), (5, 1.0), (5, math.nan)])
def test_growth_refuses_what_is_no_epoch_of_adam(batches, beta_2) -> None:
    with pytest.raises(BadInput, match="must"):
        geometric().growth(batches, beta_2)


def test_annealed_rises_in_a_straight_line_and_stays() -> None:
    weights = [annealed(1.5)(moment_at(step)) for step in range(12)]
    assert weights == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1, 1, 1, 1, 1, 1])
    assert weights[6:] == [1.0] * 6
    assert [annealed(1, start=0.2)(moment_at(step)) for step in range(6)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1, 1])


def test_tempered_multiplies() -> None:
    assert tempered(0.1)(moment_at(3)) == 0.1


def test_wrapping_multiplies_what_is_wrapped() -> None:
    for step in range(12):
        both = annealed(2, of=tempered(0.1, of=geometric()))(moment_at(step))
        assert both == pytest.approx(annealed(2)(moment_at(step)) * 0.1 * geometric()(moment_at(step)))
        assert tempered(0.1, of=annealed(2, of=geometric()))(moment_at(step)) == pytest.approx(both)


@pytest.mark.parametrize(
    "make",
    [
        lambda: annealed(0),
        lambda: annealed(-1),
        lambda: annealed(math.inf),
        lambda: annealed(5, start=-0.1),
        lambda: annealed(5, start=1.1),
        lambda: annealed(5, start=math.nan),
        lambda: annealed(5, of=1.0),
        lambda: tempered(0),
        lambda: tempered(math.nan),
        lambda: tempered(0.5, of="uniform"),
    ],
)
def test_refuses_what_makes_no_schedule(make) -> None:
    with pytest.raises(BadInput):
        make()


def test_settings_compare_and_print() -> None:
    assert annealed(5, of=tempered(0.1)) == annealed(5, of=tempered(0.1))
    assert annealed(5) != annealed(6)
    assert repr(annealed(5)) == "Annealed(epochs=5, start=0.0, of=Uniform())"
