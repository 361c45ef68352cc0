"""Scores and findings, as a terminal shows them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from doxa_cli.terminal import print_line, print_paragraph, print_table

MAIN = (
    "error",
    "rmse",
    "nll",
    "crps",
    "brier",
    "ece",
    "coverage_90",
    "auroc_entropy",
    "error_pruned_95",
    "rmse_pruned_95",
)

SHORT, LONG = 1e-4, 1e6  # outside of which numbers are shown in powers of ten


def show_scores(title: str, scores: Mapping[str, Mapping[str, Any]], only: Sequence[str] | None = None) -> None:
    """Scores with their Monte-Carlo errors: all of them, or those of a list that there are."""
    names = scores if only is None else [name for name in only if name in scores]
    print_table(title, ["score", "value", "±"], [(name, *format_score(**scores[name])) for name in names])


def show_findings(findings: Sequence[str]) -> None:
    """What a careful reader would remark on."""
    if findings:
        print_line()
        for finding in findings:
            print_paragraph(finding, first="- ")


def format_score(value: float | None, error: float | None = None, **_: Any) -> tuple[str, str]:
    """A value to the digits that its error leaves meaning, and the error; to four digits where it has none."""
    if value is None:
        return "–", ""
    if not error:
        return format_number(value), ""
    error_exponent = math.floor(math.log10(error))
    if not SHORT <= max(abs(value), error) < LONG:
        digits = max(1, math.floor(math.log10(abs(value))) - error_exponent + 1) if value else 1
        return f"{value:.{min(digits, 6)}e}", f"{error:.1e}"
    places = max(0, min(6, 1 - error_exponent))
    return f"{value:,.{places}f}", f"{error:,.{places}f}"


def format_number(value: float) -> str:
    """Four digits; in powers of ten where that would be long."""
    if value and not SHORT <= abs(value) < LONG:
        return f"{value:.4g}"
    places = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 1
    return f"{value:,.{places}f}"
