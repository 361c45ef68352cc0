"""What a sentence of the document comes to by the smoothed curve that its authors saw, and by the exact density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN
from doxa_replicate.show import ResultTable
from doxa_replicate.verdicts import FAIL, PASS, Evidence

WORDS = {PASS: "holds", FAIL: "does not hold"}
MEANS = {AS_RUN: "kernel estimate", AS_WRITTEN: "exact density"}


def judge_both(smoothed: Evidence, exact: float) -> dict[str, Any]:
    """The evidence of several samples of draws, and that of a number without chance, by the same borders."""
    without_chance = Evidence((exact, exact), smoothed.above, smoothed.below)
    return {AS_RUN: smoothed.as_dict(), AS_WRITTEN: without_chance.as_dict()}


def judged_table(judged: Mapping[str, Mapping[str, Any]], places: int) -> ResultTable:
    """A line for each sentence and column, with the 95 % interval over samples of draws."""
    rows = [
        [sentence, MEANS[column], _measured(part, places), WORDS.get(part["verdict"], "stays open")]
        for sentence, by_column in judged.items()
        for column, part in by_column.items()
    ]
    caption = "Holds or does not hold where the 95 % interval over samples of draws lies on one side of the border."
    return ResultTable("By the smoothed curve and by the density", _HEADERS, rows, text_columns=2, caption=caption)


_HEADERS: Sequence[str] = ("what is said", "by", "mean [95 % interval]", "verdict")


def _measured(part: Mapping[str, Any], places: int) -> str:
    mean, low, high = (f"{part[key]:.{places}f}".replace("-", "−") for key in ("mean", "low", "high"))
    return mean if part["low"] == part["high"] else f"{mean} [{low}, {high}]"
