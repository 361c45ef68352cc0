"""Laws of schedules: every KL weight and every learning rate of the two tables, over whole runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doxa import kl_weights, rates
from doxa.contracts import Moment, Schedule
from doxa.engine.run import schedule_values

WEIGHTS = {
    **{f"{name}-{i}": w for name, ws in kl_weights.EXAMPLES.items() for i, w in enumerate(ws)},
    "annealed-geometric": kl_weights.annealed(2.5, start=0.1, of=kl_weights.geometric()),
}
RATES = {f"{name}-{i}": rate for name, rs in rates.EXAMPLES.items() for i, rate in enumerate(rs)}
# These two change the objective on purpose.
OF_THE_TRUE_FREE_ENERGY = [name for name in WEIGHTS if not name.startswith(("annealed", "tempered"))]

lengths = st.integers(1, 6), st.integers(1, 300)


def whole_run(epochs: int, batches: int) -> Iterator[Moment]:
    for k in range(epochs * batches):
        yield Moment(k, epochs * batches, k % batches, batches)


def test_every_schedule_is_under_these_laws() -> None:
    for room in (kl_weights, rates):
        assert set(room.EXAMPLES) == set(room.TABLE)
        assert all(type(one) is room.TABLE[name] for name, examples in room.EXAMPLES.items() for one in examples)


@pytest.mark.parametrize("schedule", [*WEIGHTS.values(), *RATES.values()], ids=[*WEIGHTS, *RATES])
@given(epochs=lengths[0], batches=lengths[1])
@settings(max_examples=15, deadline=None)
def test_is_a_finite_number_never_below_zero(schedule: Schedule, epochs: int, batches: int) -> None:
    values = [schedule(moment) for moment in whole_run(epochs, batches)]
    assert all(isinstance(value, float) and 0 <= value < math.inf for value in values)
    assert max(values) > 0


@pytest.mark.parametrize("schedule", [*WEIGHTS.values(), *RATES.values()], ids=[*WEIGHTS, *RATES])
def test_depends_on_the_moment_alone(schedule: Schedule) -> None:
    """Asked backwards it answers the same: a resumed run goes on as the uninterrupted one."""
    moments = list(whole_run(5, 7))
    forwards = [schedule(moment) for moment in moments]
    assert [schedule(moment) for moment in reversed(moments)] == forwards[::-1]


@pytest.mark.parametrize("name", OF_THE_TRUE_FREE_ENERGY)
@pytest.mark.parametrize("batches", [1, 2, 10, 469, 5000])
def test_weights_average_to_one_over_each_epoch(name: str, batches: int) -> None:
    weights = [WEIGHTS[name](moment) for moment in whole_run(3, batches)]
    for epoch in range(3):
        epoch_weights = weights[epoch * batches : (epoch + 1) * batches]
        assert math.fsum(epoch_weights) / batches == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("batches", [1, 2, 10, 469, 5000])
def test_geometric_shares_sum_to_one_and_halve(batches: int) -> None:
    shares = [kl_weights.geometric()(moment) / batches for moment in whole_run(1, batches)]
    assert math.fsum(shares) == pytest.approx(1, rel=1e-12)
    for earlier, later in pairwise(shares[:500]):
        assert later == pytest.approx(earlier / 2, rel=1e-12)


@given(epochs=lengths[0], batches=lengths[1], ramp=st.floats(0.1, 5.0), start=st.floats(0.0, 1.0))
@settings(max_examples=25, deadline=None)
def test_annealing_never_falls_and_arrives(epochs: int, batches: int, ramp: float, start: float) -> None:
    schedule = kl_weights.annealed(ramp, start=start)
    values = [schedule(moment) for moment in whole_run(epochs, batches)]
    assert values[0] == start
    assert all(earlier <= later + 1e-15 for earlier, later in pairwise(values))
    after = values[math.ceil(ramp * batches) :]
    assert after == pytest.approx([1.0] * len(after), rel=1e-12)


@given(temperature=st.floats(1e-3, 10.0), batches=lengths[1])
@settings(max_examples=25, deadline=None)
def test_tempering_multiplies_the_average_by_the_temperature(temperature: float, batches: int) -> None:
    schedule = kl_weights.tempered(temperature, of=kl_weights.geometric())
    average = math.fsum(schedule(moment) for moment in whole_run(1, batches)) / batches
    assert average == pytest.approx(temperature, rel=1e-9)


@pytest.mark.parametrize(("cycle", "batches", "length"), [(1, 1, 1), (1, 10, 10), (3, 7, 21), (0.5, 10, 5)])
def test_cyclical_is_low_exactly_at_the_end_of_each_cycle(cycle: float, batches: int, length: int) -> None:
    high, low = 0.1, 0.003
    values = [rates.cyclical(high, low, cycle)(moment) for moment in whole_run(12, batches)]
    assert [k for k, value in enumerate(values) if value == low] == list(range(length - 1, 12 * batches, length))
    assert min(values) == low
    assert max(values) <= high


@pytest.mark.parametrize("every", [1, 2, 3])
def test_step_halves(every: int) -> None:
    values = [rates.step(0.1, every)(moment) for moment in whole_run(9, 5)]
    stair = 5 * every
    assert all(later == earlier / 2 for earlier, later in zip(values, values[stair:], strict=False))
    assert len(set(values)) == math.ceil(9 / every)


@given(epochs=lengths[0], batches=st.integers(4, 300), final=st.floats(0.0, 0.1), warmup=st.floats(0.0, 0.5))
@settings(max_examples=25, deadline=None)
def test_cosine_peaks_after_its_warm_up_and_ends_at_final(
    epochs: int, batches: int, final: float, warmup: float
) -> None:
    values = [rates.cosine(0.1, final, warmup)(moment) for moment in whole_run(epochs, batches)]
    peak = round(warmup * batches)
    assert values[-1] == pytest.approx(final, abs=1e-15)
    assert values[peak] == pytest.approx(0.1)
    assert values[: peak + 1] == sorted(values[: peak + 1])
    assert values[peak:] == sorted(values[peak:], reverse=True)


def test_schedules_that_are_equal_are_asked_once_and_others_each() -> None:
    """Learners that were made one by one have schedules of their own, which say the same."""
    asked: list[float] = []

    @dataclass(frozen=True)
    class Counted:
        value: Any

        def __call__(self, moment: Moment) -> float:
            asked.append(moment.step)
            return float(self.value[0] if isinstance(self.value, list) else self.value)

    moments = [*whole_run(2, 3)]
    values = schedule_values([Counted(1.0), Counted(2.0), Counted(1.0), Counted([3.0]), Counted([3.0])], moments)
    assert values.tolist() == [[1.0, 2.0, 1.0, 3.0, 3.0]] * 6
    assert len(asked) == 4 * 6, "lists are no keys: those are asked apart"
