"""The rule by which claims are judged."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from doxa_replicate import verdicts
from doxa_replicate.contract import Claim
from doxa_replicate.verdicts import FAIL, OPEN, PASS, Evidence, best_of, combined, paired, unanimous


def test_the_interval_is_student_s() -> None:
    values = [0.3, -0.1, 0.4, 0.2, 0.0]
    expected = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    assert Evidence(values).interval == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("values", "borders", "verdict"),
    [
        ([-1.0, -1.1, -0.9], {"below": 0.0}, PASS),
        ([1.0, 1.1, 0.9], {"below": 0.0}, FAIL),
        ([-1.0, 1.1, -0.9], {"below": 0.0}, OPEN),
        ([0.01, -0.02, 0.0], {"above": -0.2, "below": 0.2}, PASS),
        ([0.31, 0.32, 0.3], {"above": -0.2, "below": 0.2}, FAIL),
        ([0.18, 0.22, 0.2], {"above": -0.2, "below": 0.2}, OPEN),
        ([-5.0], {"below": 0.0}, OPEN),
        ([-5.0, None], {"below": 0.0}, OPEN),
        ([0.0, 0.0, 0.0], {"below": 0.0}, FAIL),
    ],
)
def test_only_an_interval_that_excludes_the_border_decides(
    values: list[float | None], borders: dict[str, float], verdict: str
) -> None:
    assert Evidence(values, **borders).verdict == verdict


def test_it_is_wrong_as_seldom_as_it_says() -> None:
    """Of 2,000 claims whose truth lies on the border, one in twenty is decided; half of them each way."""
    rng = np.random.default_rng(0)
    verdicts = [Evidence([*rng.normal(0.0, 1.0, 5)], below=0.0).verdict for _ in range(2000)]
    for decided in (PASS, FAIL):
        assert abs(verdicts.count(decided) / 2000 - 0.025) < 3 * math.sqrt(0.025 * 0.975 / 2000)


def test_so_many_seeds_would_decide_it() -> None:
    values = [-0.4, 0.5, -0.9, -0.2, 0.3]
    evidence = Evidence(values, below=0.0)
    needed = evidence.seeds_needed
    assert needed is not None
    mean, deviation = np.mean(values), np.std(values, ddof=1)
    half_widths = [stats.t.ppf(0.975, n - 1) * deviation / math.sqrt(n) for n in (needed, needed - 1)]
    assert half_widths[0] < -mean <= half_widths[1]
    assert Evidence([-1.0, -1.1], below=10.0).seeds_needed is None
    assert Evidence([-1.0, 1.0], below=0.0).seeds_needed is None


def test_how_many_seeds_is_found_by_few_quantiles_and_is_the_least_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """As trying all counts one by one would have it, near a border of either side and of both."""
    asked: list[int] = []

    def quantile(count: int) -> float:
        asked.append(count)
        return float(stats.t.ppf(0.975, count - 1))

    monkeypatch.setattr(verdicts, "_quantile", quantile)
    rng = np.random.default_rng(3)
    decided = set()
    for _ in range(40):
        evidence = Evidence([*rng.normal(0.0, 1.0, 4)], above=-2.0, below=float(rng.uniform(0.05, 0.6)))
        if evidence.verdict != OPEN or evidence.deviation is None:
            continue
        distance = min(abs(evidence.mean - border) for border in (evidence.above, evidence.below))
        half_widths = {n: quantile(n) * evidence.deviation / math.sqrt(n) for n in range(4, verdicts.MANY_SEEDS + 1)}
        asked.clear()
        needed = evidence.seeds_needed
        assert needed == next((n for n, half in half_widths.items() if half < distance), None)
        assert len(asked) <= 12
        decided.add(needed is not None)
    assert True in decided


def test_a_claim_of_several_parts_holds_where_all_do() -> None:
    assert combined([PASS, PASS]) == PASS
    assert combined([PASS, OPEN]) == OPEN
    assert combined([OPEN, FAIL, PASS]) == FAIL
    assert combined([]) == OPEN


def test_what_rests_on_a_guess_is_decided_where_every_guess_decides_it_alike() -> None:
    assert unanimous([PASS, PASS]) == PASS
    assert unanimous([FAIL, FAIL, FAIL]) == FAIL
    assert unanimous([FAIL, PASS, FAIL]) == OPEN
    assert unanimous([OPEN, FAIL]) == OPEN
    assert unanimous([]) == OPEN


def test_the_best_of_several_beats_each_of_the_others() -> None:
    evidence = best_of({"a": [1.0, 1.1, 1.2], "b": [0.0, 0.2, 0.1], "c": [0.9, 1.2, 1.1]}, "a")
    assert {name: each.verdict for name, each in evidence.items()} == {"a less b": PASS, "a less c": OPEN}
    lowest = best_of({"a": [1.0, 1.1, 1.2], "b": [0.0, 0.2, 0.1]}, "b", highest=False)
    assert lowest["b less a"].verdict == PASS


def test_a_verdict_tells_its_intervals_and_borders() -> None:
    claim = Claim("C-1", "a is less than b", "a − b below 0")
    verdict = claim.decide({"a − b": paired([1.0, 1.2, 1.1], [2.0, 2.3, 2.0], below=0.0)}, [0, 1, 2], "as run")
    assert verdict["verdict"] == PASS
    part = verdict["parts"]["a − b"]
    assert part["low"] < part["mean"] < part["high"] < part["below"] == 0.0
    assert "above" not in part
    assert verdict["column"] == "as run"
