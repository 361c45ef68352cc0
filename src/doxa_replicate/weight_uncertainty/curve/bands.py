"""Pieces that several of the curve's figures show alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.show import Area, Chart, ChartLine, Dots
from doxa_replicate.weight_uncertainty.curve.measures import INSIDE

Y_LIMITS = (-1.5, 2.5)


def band_chart(title: str, caption: str, record: Mapping[str, Any], middle: str = "mean") -> Chart:
    """Mean (or median), the middle half and the middle 90 % of functions, over the training points."""
    band = record["band"]
    x, quantiles = band["x"], band["quantiles"]
    line = ChartLine(middle, x, band["mean"] if middle == "mean" else quantiles["0.5"])
    areas = [
        Area("5–95 %", x, quantiles["0.05"], quantiles["0.95"], like=middle),
        Area("25–75 %", x, quantiles["0.25"], quantiles["0.75"], like=middle),
    ]
    dots = [Dots("training data", record["training"]["x"], record["training"]["y"])]
    return Chart(title, caption, "x", "y", [line], areas, dots, INSIDE, (-0.5, 1.5), Y_LIMITS)


def spread_caption(record: Mapping[str, Any], subject: str = "the middle half") -> str:
    return (
        f"Amid the data {subject} is {record['iqr_inside']:.3g} wide, away from them {record['iqr_outside']:.3g}: "
        f"{record['iqr_ratio']:.3g} times."
    )


def curves_chart(
    title: str, caption: str, y_label: str, points_by_name: Mapping[str, Sequence[Sequence[float]]], log_y: bool = False
) -> Chart:
    """Lines of [epoch, value] by name."""
    lines = [ChartLine(name, [p[0] for p in points], [p[1] for p in points]) for name, points in points_by_name.items()]
    return Chart(title, caption, "epoch", y_label, lines, log_y=log_y)


def band_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a record that a band is drawn of."""
    return {key: record[key] for key in ("band", "training", "iqr_inside", "iqr_outside", "iqr_ratio")}
