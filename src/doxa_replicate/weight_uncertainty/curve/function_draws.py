"""Figure 10: ten functions drawn from each of two beliefs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.show import Chart, Dots, Line, Shown
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.bands import LIMITS
from doxa_replicate.weight_uncertainty.curve.measures import INSIDE
from doxa_replicate.weight_uncertainty.curve.trainings import PRIOR

BELIEFS = {"single Gaussian": ("gaussian", f"{PRIOR}"), "scale mixture": ("mixture", "1, 6")}


def run(ask: Ask) -> Numbers:
    found = {}
    for name, (fleet, prior) in BELIEFS.items():
        one = trainings.records(ask, fleet)[prior][0]
        found[name] = {"x": one["band"]["x"], "functions": one["functions"], "training": one["training"]}
    return {"settings": trainings.settings(ask), "seeds": trainings.seeds(ask)[:1], "beliefs": found}


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    charts = []
    for name, own in found["numbers"]["beliefs"].items():
        lines = [Line(f"draw {k + 1}", own["x"], y, faint=True) for k, y in enumerate(own["functions"])]
        dots = [Dots("training data", own["training"]["x"], own["training"]["y"])]
        says = "Each line is the net with one draw of all its weights."
        charts.append(Chart(name, says, "x", "y", lines, (), dots, INSIDE, (-0.5, 1.5), LIMITS))
    return charts


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-10",
    place=8,
    group="regression",
    title="Ten functions drawn from beliefs with either prior",
    rows=("WU-33",),
    run=run,
    reference={"document": "the functions spread outside the training data; no numbers are printed"},
    left_open=("the scales of both priors: −log σ = 1, and −log σ₁, σ₂ = 1, 6",),
    takes=("some seconds", "two minutes on a GPU"),
    show=show,
)
