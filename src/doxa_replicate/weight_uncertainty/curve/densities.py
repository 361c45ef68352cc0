"""Log predictive densities by prior: as they were printed, and the lppd, each seed's number beside the document's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doxa.bandits.comparison import student_quantile
from doxa_replicate.over_seeds import mean, standard_error
from doxa_replicate.show import ResultTable

METRICS = {"mean_log": "mean of log densities", "lppd": "lppd"}
EACH = {"mean_log": "each_mean_log", "lppd": "each"}  # what a row calls every seed's
CENTRAL = (0.025, 0.975)  # the seeds between which 95 % lie
LARGEST_FACTOR = 1.5


def density_table(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Densities over seeds by prior, with what their draws leave unsure."""
    return {prior: density_row([r["densities"] for r in rows], rows) for prior, rows in records.items()}


def density_row(densities: Sequence[Mapping[str, float]], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One prior's: means, standard errors, each seed's, and the central 95 % of seeds, of both metrics."""
    each = {metric: [d[metric] for d in densities] for metric in METRICS}
    return {
        **{metric: mean(values) for metric, values in each.items()},
        "se": standard_error(each["lppd"]),
        "se_mean_log": standard_error(each["mean_log"]),
        "inside": mean([d["lppd_inside"] for d in densities]),
        "monte_carlo_error": mean([d["lppd_error"] for d in densities]),
        "monte_carlo_bias": mean([d["lppd_bias"] for d in densities]),
        "each": each["lppd"],
        "each_mean_log": each["mean_log"],
        "central": {metric: central(values) for metric, values in each.items()},
        "kept_at": [r["kept_at"] for r in rows],
        "epochs": rows[0]["epochs"],
    }


def central(values: Sequence[float]) -> list[float]:
    """Where the central 95 % of numbers begin and end, by straight lines between them."""
    return [float(v) for v in np.quantile(values, CENTRAL)]


def predicted(values: Sequence[float], runs: int) -> list[float]:
    """Where the mean of so many further ones would lie, at 95 %; anywhere, of one seed."""
    if len(values) < 2:
        return [-math.inf, math.inf]
    spread = float(np.std(values, ddof=1)) * math.sqrt(1 / runs + 1 / len(values))
    half = student_quantile(CENTRAL[1], len(values) - 1) * spread
    return [mean(values) - half, mean(values) + half]


def beside_document(ours: Sequence[float], document: float, runs: int = 1) -> dict[str, Any]:
    """Whether the document's number lies in the central 95 % of seeds, and what the mean is of it.

    Where the document's number is a mean of several runs, it is held against where the mean of as many new ones would
    lie: mean ± t_{n−1} s √(1/runs + 1/n), Student's prediction interval.
    """
    low, high = central(ours) if runs == 1 else predicted(ours, runs)
    factor = mean(ours) / document
    return {
        "document": document,
        "runs": runs,
        "mean": mean(ours),
        "central": [low, high],
        "inside": low <= document <= high,
        "factor": factor,
        "re_created": low <= document <= high and 1 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR,
    }


def comparison_row(name: str, compared: Mapping[str, Any], places: int) -> list[str]:
    low, high = compared["central"]
    return [
        name,
        f"{compared['document']:,.{places}f}",
        f"{compared['mean']:,.{places}f}",
        f"{low:,.{places}f} to {high:,.{places}f}",
        "yes" if compared["inside"] else "no",
        f"{compared['factor']:.2f}",
        "yes" if compared["re_created"] else "no",
    ]


def comparison_table(
    title: str, compared: Mapping[str, Mapping[str, Any]], caption: str, places: int = 2, first: str = "prior"
) -> ResultTable:
    """The document's numbers beside ours."""
    headers = (
        first,
        "document",
        "mean here",
        "central 95 %",
        "document inside",
        "mean over document",
        "re-created",
    )
    rows = [comparison_row(name, each, places) for name, each in compared.items()]
    runs = max((each.get("runs", 1) for each in compared.values()), default=1)
    middle = "of seeds" if runs == 1 else f"of the mean of {runs} further seeds, by Student"
    rule = f"Central 95 % {middle}. Re-created: inside, and the mean within {LARGEST_FACTOR:g} times."
    return ResultTable(title, headers, rows, caption=f"{caption} {rule}")
