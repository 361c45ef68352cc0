"""Times are taken in turn, each beside the plain step last taken, and summed up by medians."""

from __future__ import annotations

import pytest

from doxa_bench.timing import EVERY, FEWEST, ratio_quartiles, seconds, summarize_pairs, time_in_turn, time_side_by_side


class Clock:
    """Time passes only in steps."""

    def __init__(self) -> None:
        self.now, self.log = 0.0, list[str]()

    def __call__(self) -> float:
        return self.now

    def step(self, name: str, *takes: float):
        times = iter(takes)
        last = takes[-1]

        def run() -> None:
            self.log.append(name)
            self.now += next(times, last)

        return run


def test_seconds_are_those_of_one_step() -> None:
    clock = Clock()
    assert seconds(clock.step("a", 2.0), 4, clock=clock) == 2.0


def test_every_step_has_its_turn_in_every_round() -> None:
    clock = Clock()
    others = {name: clock.step(name, 2.0) for name in "abcd"}
    pairs_by_step = time_in_turn(clock.step("plain", 1.0), others, rounds=5, limit=1e9, clock=clock)
    assert {name: len(pairs) for name, pairs in pairs_by_step.items()} == dict.fromkeys("abcd", 5)
    assert pairs_by_step["d"] == [(1.0, 2.0)] * 5
    one_round = ["plain", *"abc", "plain", "d"]
    assert EVERY == 3
    assert clock.log[-len(one_round) :] == one_round
    assert clock.log[-5 * len(one_round) :] == 5 * one_round


def test_a_slow_spell_is_held_against_the_plain_step_beside_it() -> None:
    """The machine gets ten times slower for good: the ratio does not notice."""
    clock = Clock()
    warming = 3 + 1  # the plain step's; the other's two
    plain = clock.step("plain", *[1.0] * (warming + 3), 10.0)
    other = clock.step("a", *[2.0] * (1 + 4), 20.0)
    (pairs,) = time_in_turn(plain, {"a": other}, rounds=9, limit=1e9, clock=clock).values()
    assert summarize_pairs(pairs)["ratio"] == 2.0
    assert {b for _, b in pairs} == {2.0, 20.0}


def test_no_round_passes_the_limit_but_the_fewest() -> None:
    def rounds(limit: float) -> int:
        clock = Clock()
        return len(time_in_turn(clock.step("plain", 1.0), {"a": clock.step("a", 1.0)}, 100, limit, clock=clock)["a"])

    assert rounds(0.0) == FEWEST
    assert rounds(24.5) == 10  # four steps to warm up, two a round


def test_fast_steps_are_repeated_in_a_visit() -> None:
    clock = Clock()
    time_in_turn(clock.step("plain", 0.001), {"a": clock.step("a", 0.001)}, 1, 1e9, clock=clock)
    assert clock.log == ["plain"] * 3 + ["a"] * 2 + ["plain"] * 5 + ["a"] * 5


def test_figures_are_medians_and_quartiles_over_rounds() -> None:
    pairs = [(1.0, float(b)) for b in (9, 1, 2, 3, 4, 5, 6, 7, 8)]
    summary = summarize_pairs(pairs)
    assert (summary["low"], summary["ratio"], summary["high"]) == (3.0, 5.0, 7.0)
    assert (summary["plain_ms"], summary["ms"], summary["rounds"]) == (1000.0, 5000.0, 9)
    assert ratio_quartiles([2.0]) == {"ratio": 2.0, "low": 2.0, "high": 2.0}
    assert summarize_pairs([(2.0, 1.0)])["ratio"] == pytest.approx(0.5)


def test_steps_side_by_side_have_a_turn_in_every_round() -> None:
    clock = Clock()
    steps = {"slow": clock.step("slow", 3.0), "fast": clock.step("fast", 0.04)}
    seconds_by_step = time_side_by_side(steps, rounds=4, limit=1e9, clock=clock)
    assert seconds_by_step["slow"] == pytest.approx([3.0] * 4)
    assert seconds_by_step["fast"] == pytest.approx([0.04] * 4)
    assert clock.log[-6:] == ["slow", "fast", "fast"] * 2, "what is short is taken more often"
    brief = time_side_by_side(steps, rounds=100, limit=30.0, clock=clock)
    assert FEWEST <= len(brief["slow"]) < 10
