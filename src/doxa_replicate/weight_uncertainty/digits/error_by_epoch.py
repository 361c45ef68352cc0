"""Figure 18: test error against epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.over_seeds import mean
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.weight_uncertainty.curve.measures import average
from doxa_replicate.weight_uncertainty.digits.cells import WATCHING, cells
from doxa_replicate.weight_uncertainty.digits.mnist_error import row
from doxa_replicate.weight_uncertainty.digits.models import MODELS
from doxa_replicate.weight_uncertainty.digits.weight_histograms import NAMES


def run(ask: Ask) -> Numbers:
    found = {name: cells(ask, name, 1200) for name in NAMES}
    return {
        "settings": {"units": 1200, "draws": WATCHING},
        "seeds": [cell["seed"] for cell in found["plain"]],
        "curves": {name: average([cell["curve"] for cell in own]) for name, own in found.items()},
        "at_the_end": {name: row(own) for name, own in found.items()},
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    lines = [
        Line(MODELS[name].title, [p[0] for p in points], [p[1] for p in points])
        for name, points in numbers["curves"].items()
    ]
    lowest = ", ".join(
        f"{MODELS[name].title} {best:.2f} % at epoch {epoch:.0f}"
        for name, points in numbers["curves"].items()
        for epoch, best in [min(points, key=lambda p: p[1])]
    )
    top = 2 * mean([points[-1][1] for points in numbers["curves"].values()])
    rows = [
        [MODELS[name].title, f"{of['error']['mean']:.2f}", f"{of['nll']['mean']:.3f}", f"{of['ece']['mean']:.2f}"]
        for name, of in numbers["at_the_end"].items()
    ]
    return [
        Chart("Test error", f"Lowest: {lowest}.", "epoch", "error, %", lines, y_limits=(0, top)),
        Table("At the end, all draws", ("net", "error %", "NLL", "ECE %"), rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-18",
    place=24,
    group="mnist",
    title="Test error while learning: plain, dropout, belief",
    rows=("WU-51",),
    run=run,
    reference={
        "document": "the plain net converges first, to a higher error, with periodic spikes; the belief is slower, and "
        "as good as dropout; no numbers are printed"
    },
    left_open=("how many draws a point is taken with: ten; every tenth epoch",),
    takes=("some seconds", "14 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
