"""Whatever numbers a result holds, its page is whole, its pictures are pictures, and its numbers are short."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any
from xml.etree import ElementTree

import pytest

from doxa import report
from doxa.errors import BadInput
from doxa.report.figures import TABLE, drawable
from doxa.report.numbers import format_percent, format_with_error
from doxa.report.plausible import plausible

from .fuzz import odd_result

PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)
POINTS = 20_000


def require_whole(page: str) -> None:
    """Every picture is XML with numbers of a size that a browser holds; no number fills a line."""
    for svg in PICTURE.findall(page):
        ElementTree.fromstring(svg)
        drawn = re.sub(r'aria-label="[^"]*"|>[^<]*<', "", svg)
        assert not re.search(r"\b(nan|inf)\b|\d{39}", drawn)
    assert not re.search(r"[\d,]{40}", re.sub(r"base64,\S+", "", page))


@pytest.mark.parametrize("section", TABLE)
def test_any_number_in_any_place(section: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(6):
            rng = random.Random(f"{section} {seed}")
            require_whole(report.page([odd_result(rng, section) for _ in range(1 + seed % 2)]))


def test_any_score_in_any_place() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        require_whole(report.page([odd_result(rng) for _ in range(rng.randrange(1, 4))]))


@pytest.mark.parametrize(
    ("section", "table"),
    [
        ("reliability", {"confidence": [0.5] * POINTS, "accuracy": [0.5] * POINTS, "count": [1] * POINTS}),
        ("entropy", {"edges": [*range(POINTS + 1)], "inside": [1] * POINTS, "outside": [2] * POINTS}),
        ("pruning", {"share": [k / POINTS for k in range(POINTS)], "error": [0.5] * POINTS}),
        ("signal_to_noise", {"edges": [*range(POINTS + 1)], "count": [1] * POINTS}),
        ("attack", {"radius": [*range(POINTS)], "accuracy": [0.5] * POINTS}),
        ("history", [{"nll": 1 / (k + 1)} for k in range(POINTS)]),
        (
            "band",
            {
                **{name: [*range(POINTS)] for name in ("x", "mean", "train_x", "train_y")},
                "lower": [-1.0] * POINTS,
                "upper": [1.0] * POINTS,
            },
        ),
    ],
)
def test_many_points_are_drawn_as_many_as_can_be_seen(section: str, table: Any) -> None:
    page = report.page([{"name": "long", "scores": {}, section: table}])
    require_whole(page)
    assert len(page) < 2_000_000
    assert page.count("<tr>") < 500


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324, float("inf"), -float("inf"), 1e-300, 123456.0])
@pytest.mark.parametrize("error", [None, 0.0, 5e-324, 1e-300, 1e308, float("inf"), 0.1])
def test_any_number_is_shown_shortly(value: float, error: float | None) -> None:
    assert len(format_with_error(value, error)) < 30
    assert len(format_percent(value)) < 20


def test_whole_numbers_that_no_float_holds_and_tables_without_end() -> None:
    nested: Any = 1
    for _ in range(200):
        nested = [nested]
    settings = plausible({"name": "a", "scores": {}, "settings": {"a": 10**400, "b": -(10**400), "c": nested}})
    assert settings["settings"]["a"] == -settings["settings"]["b"] == 1.7976931348623157e308
    require_whole(report.page([settings]))
    with pytest.raises(BadInput, match="nested deeper than 64 levels"):
        report.page([{"name": "a", "scores": {}, "settings": {"c": nested}}])


def test_a_count_is_of_rows_and_never_negative() -> None:
    table = {"edges": [0.0, 1.0, 2.0, 3.0], "count": [-5, 1, 1e308]}
    result = plausible({"name": "a", "scores": {}, "signal_to_noise": table})
    assert result["signal_to_noise"]["count"] == [0, 1, 1e30]
    assert table["count"][0] == -5


def test_limits_are_never_as_good_as_the_same() -> None:
    for low, high in ((0.0, 0.0), (1e30, 1e30), (-5.0, -5.0), (3.0, 1.0), (1.0, 1.0 + 2**-50)):
        bounds = drawable.apart(low, high)
        assert bounds[0] <= min(low, high)
        assert bounds[1] >= max(low, high)
        assert bounds[1] - bounds[0] > 1e-9 * max(map(abs, bounds))


def test_some_of_many_are_the_first_the_last_and_between() -> None:
    assert drawable.some(5) == [0, 1, 2, 3, 4]
    assert drawable.some(9, 3) == [0, 4, 8]
    assert len(set(drawable.some(10**6))) == drawable.MOST_POINTS
