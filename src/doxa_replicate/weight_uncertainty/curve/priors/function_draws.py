"""Figure 10: ten functions drawn from each of two beliefs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, Dots, PageElement
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import Y_LIMITS
from doxa_replicate.weight_uncertainty.curve.compared_records import records_by_prior_kind
from doxa_replicate.weight_uncertainty.curve.measures import INSIDE


def run(options: ReplicationOptions) -> Numbers:
    draws_by_belief = {}
    for name, rows in records_by_prior_kind(options).items():
        record = rows[0]
        draws_by_belief[name] = {
            "x": record["band"]["x"],
            "functions": record["functions"],
            "training": record["training"],
        }
    return {
        "settings": trainings.common_settings(options),
        "seeds": trainings.seeds(options)[:1],
        "beliefs": draws_by_belief,
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    charts = []
    for name, draws in result["numbers"]["beliefs"].items():
        lines = [ChartLine(f"draw {k + 1}", draws["x"], y, faint=True) for k, y in enumerate(draws["functions"])]
        dots = [Dots("training data", draws["training"]["x"], draws["training"]["y"])]
        caption = "Each line is the net with one draw of all its weights."
        charts.append(Chart(name, caption, "x", "y", lines, (), dots, INSIDE, (-0.5, 1.5), Y_LIMITS))
    return charts


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-10",
    order=8,
    group="regression",
    title="Ten functions drawn from beliefs with either prior",
    requirements=("WU-33",),
    run=run,
    reference={"document": "the functions spread outside the training data; no numbers are printed"},
    left_open=("the scales of both priors: −log σ = 1, and −log σ₁, σ₂ = 1, 6",),
    durations=("some seconds", "two minutes on a GPU"),
    show=show,
)
