"""Figure 10: ten functions drawn from each of two beliefs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, Dots, PageElement
from doxa_replicate.weight_uncertainty.curve.bands import Y_LIMITS
from doxa_replicate.weight_uncertainty.curve.measures import INSIDE
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import settings_by_column
from doxa_replicate.weight_uncertainty.curve.trainings.compared import records_by_prior_kind
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import COLUMNS, seeds


def run(options: ReplicationOptions) -> Numbers:
    return {
        "settings": settings_by_column(options),
        "seeds": seeds(options)[:1],
        "columns": {column: {"beliefs": _draws(options, column)} for column in COLUMNS},
    }


def _draws(options: ReplicationOptions, column: str) -> dict[str, Any]:
    return {
        name: {
            "x": rows[0]["band"]["x"],
            "functions": rows[0]["functions"],
            "training": rows[0]["training"],
        }
        for name, rows in records_by_prior_kind(options, column).items()
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [
        _chart(f"{name.capitalize()}, {column}", draws)
        for column, numbers in columns(result).items()
        for name, draws in numbers["beliefs"].items()
    ]


def _chart(title: str, draws: Mapping[str, Any]) -> Chart:
    lines = [ChartLine(f"draw {k + 1}", draws["x"], y, faint=True) for k, y in enumerate(draws["functions"])]
    dots = [Dots("training data", draws["training"]["x"], draws["training"]["y"])]
    caption = "Each line is the net with one draw of all its weights."
    return Chart(title, caption, "x", "y", lines, (), dots, INSIDE, (-0.5, 1.5), Y_LIMITS)


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-10",
    order=8,
    group="regression",
    title="Ten functions drawn from beliefs with either prior",
    requirements=("WU-33",),
    run=run,
    reference={"document": "the functions spread outside the training data; no numbers are printed"},
    left_open=("the scales of both priors: −log σ = 1, and −log σ₁, σ₂ = 1, 6",),
    durations=("some seconds", "fourteen minutes on a GPU, shared with table 2"),
    show=show,
)
