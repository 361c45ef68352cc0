"""Figure 18: test error against epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve.measures import mean_curve
from doxa_replicate.weight_uncertainty.digits.score_tables import score_row
from doxa_replicate.weight_uncertainty.digits.trainings.cells import WATCH_DRAWS, cells
from doxa_replicate.weight_uncertainty.digits.trainings.models import COMPARED_MODELS, MODELS


def run(options: ReplicationOptions) -> Numbers:
    cells_by_model = {name: cells(options, name, 1200) for name in COMPARED_MODELS}
    return {
        "settings": {"units": 1200, "draws": WATCH_DRAWS},
        "seeds": [cell["seed"] for cell in cells_by_model["plain"]],
        "curves": {
            name: mean_curve([cell["curve"] for cell in model_cells]) for name, model_cells in cells_by_model.items()
        },
        "at_the_end": {name: score_row(model_cells) for name, model_cells in cells_by_model.items()},
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    lines = [
        ChartLine(MODELS[name].title, [p[0] for p in points], [p[1] for p in points])
        for name, points in numbers["curves"].items()
    ]
    lowest = ", ".join(
        f"{MODELS[name].title} {best:.2f} % at epoch {epoch:.0f}"
        for name, points in numbers["curves"].items()
        for epoch, best in [min(points, key=lambda p: p[1])]
    )
    top = 2 * mean([points[-1][1] for points in numbers["curves"].values()])
    rows = [
        [
            MODELS[name].title,
            f"{scores['error']['mean']:.2f}",
            f"{scores['nll']['mean']:.3f}",
            f"{scores['ece']['mean']:.2f}",
        ]
        for name, scores in numbers["at_the_end"].items()
    ]
    return [
        Chart("Test error", f"Lowest: {lowest}.", "epoch", "error, %", lines, y_limits=(0, top)),
        ResultTable("At the end, all draws", ("net", "error %", "NLL", "ECE %"), rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-18",
    order=24,
    group="mnist",
    title="Test error while learning: plain, dropout, belief",
    requirements=("WU-51",),
    run=run,
    reference={
        "document": "the plain net converges first, to a higher error, with periodic spikes; the belief is slower, and "
        "as good as dropout; no numbers are printed"
    },
    left_open=("how many draws a point is taken with: ten; every tenth epoch",),
    durations=("some seconds", "14 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
