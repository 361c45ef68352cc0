"""Counts that no computer comes to the end of are refused before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from doxa.errors import BadInput
from doxa.runs import Plan
from doxa_cli.settings import merge_settings

from .small import Command

HUGE = 2**62


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("fit", "two_moons", "--members", HUGE), "members must be at most 10,000, got 4,611,686,018,427,387,904"),
        (("fit", "two_moons", "--learner", "search", "--population", HUGE), "population must be at most 10,000,000"),
        (("search", "two_moons", "--population", HUGE), "population must be at most 10,000,000"),
        (("search", "sphere", "--population", HUGE), "population must be at most 10,000,000"),
        (("search", "CartPole-v1", "--population", HUGE), "population must be at most 10,000,000"),
    ],
)
def test_huge_counts_are_refused_in_words(doxa: Command, arguments: tuple[object, ...], expected: str) -> None:
    ended = doxa(*arguments)
    assert ended.code == 1
    assert expected in ended.message
    assert not list(Path().iterdir())


def test_a_settings_file_with_a_huge_count_is_refused() -> None:
    Path("a.toml").write_text(f"members = {HUGE}")
    with pytest.raises(BadInput, match="members must be at most 10,000"):
        Plan.from_settings(merge_settings(Path("a.toml"), [], {})).require_used()


def test_the_largest_counts_are_taken() -> None:
    Plan(members=10_000).require_used()
    Plan(learner="search", population=10_000_000).require_used()
