"""FIGURES: each drawn where a result has its section. To add one: a file here and a line in TABLE."""

from collections.abc import Sequence
from typing import Any

from doxa.report.figures import (
    attack,
    band,
    entropy,
    intervals,
    learning,
    pruning,
    reliability,
    signal_to_noise,
    unsure,
)
from doxa.report.figures.panel import Figure, Panel
from doxa.report.runs import ReportedRun

TABLE: dict[str, Any] = {
    module.SECTION: module
    for module in (band, intervals, reliability, attack, entropy, pruning, signal_to_noise, unsure, learning)
}


def figures(runs: Sequence[ReportedRun], key: str) -> list[Figure]:
    """Every figure that at least one of the runs has the section for."""
    drawn_figures = []
    for section, module in TABLE.items():
        panels = module.panels(runs, f"{key}-{section}")
        if panels:
            drawn_figures.append(Figure(module.TITLE, module.LEAD, panels))
    return drawn_figures


__all__ = ["TABLE", "Figure", "Panel", "figures"]
