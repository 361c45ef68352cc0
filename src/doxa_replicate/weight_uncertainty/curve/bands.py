"""Pieces that several of the curve's figures show alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.show import Area, Chart, Dots, Line
from doxa_replicate.weight_uncertainty.curve.measures import INSIDE

LIMITS = (-1.5, 2.5)


def band_chart(title: str, says: str, record: Mapping[str, Any], middle: str = "mean") -> Chart:
    """Mean (or median), the middle half and the middle 90 % of functions, over the training points."""
    band = record["band"]
    x, of = band["x"], band["quantiles"]
    line = Line(middle, x, band["mean"] if middle == "mean" else of["0.5"])
    areas = [
        Area("5–95 %", x, of["0.05"], of["0.95"], like=middle),
        Area("25–75 %", x, of["0.25"], of["0.75"], like=middle),
    ]
    dots = [Dots("training data", record["training"]["x"], record["training"]["y"])]
    return Chart(title, says, "x", "y", [line], areas, dots, INSIDE, (-0.5, 1.5), LIMITS)


def spread_says(record: Mapping[str, Any], what: str = "the middle half") -> str:
    return (
        f"Amid the data {what} is {record['iqr_inside']:.3g} wide, away from them {record['iqr_outside']:.3g}: "
        f"{record['iqr_ratio']:.3g} times."
    )


def curves(title: str, says: str, y: str, named: Mapping[str, Sequence[Sequence[float]]], log_y: bool = False) -> Chart:
    """Lines of [epoch, value] by name."""
    lines = [Line(name, [p[0] for p in points], [p[1] for p in points]) for name, points in named.items()]
    return Chart(title, says, "epoch", y, lines, log_y=log_y)


def drawn(record: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a record that a band is drawn of."""
    return {key: record[key] for key in ("band", "training", "iqr_inside", "iqr_outside", "iqr_ratio")}
