"""Figure 18: test error against epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.curve.measures import mean_curve
from doxa_replicate.weight_uncertainty.digits.score_tables import score_row
from doxa_replicate.weight_uncertainty.digits.trainings.cells import WATCH_EVERY
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.trainings.judging import Cell, authors_draws
from doxa_replicate.weight_uncertainty.digits.trainings.models import COMPARED_MODELS, MODELS, draw_count
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

MODELS_SHOWN = (*COMPARED_MODELS, "mixture")
# Errors in per cent of the authors' own nets at some epochs, 10 draws; their “BNN (SGP)” is the net with the mixture.
DOCUMENT_EPOCHS = (1, 10, 50, 100, 200, 400, 600)
DOCUMENT_ERRORS = {
    "mixture": (7.09, 2.71, 1.90, 1.74, 1.54, 1.53, 1.41),
    "plain": (6.51, 1.96, 1.61, 1.66, 1.70, 1.62, 1.89),
    "dropout": (7.68, 2.23, 1.55, 1.45, 1.41, 1.44, 1.37),
}
DOCUMENT_SPIKES = 13  # epochs after the hundredth at which the authors' plain net errs on more than 2 %
SPIKE, SETTLED_AFTER, LAST_EPOCHS = 2.0, 100, 50


def run(options: ReplicationOptions) -> Numbers:
    by_column = cells_by_column(options, MODELS_SHOWN)
    return {
        "settings": {
            "units": 1200,
            **training_settings(options, [(name, 1200) for name in MODELS_SHOWN]),
            "draws": {"on the way": authors_draws(options), "at the end": draw_count(options)},
            "every": options.by_size(2, WATCH_EVERY),
        },
        "seeds": [cell["seed"] for cell in by_column[AS_WRITTEN]["plain"]],
        "columns": {
            column: {
                "curves": {name: mean_curve([cell["curve"] for cell in each]) for name, each in by_model.items()},
                "late": {name: _late(each) for name, each in by_model.items()},
                "at_the_end": {name: score_row(each) for name, each in by_model.items()},
            }
            for column, by_model in by_column.items()
        },
    }


def _late(model_cells: Sequence[Cell]) -> dict[str, Any]:
    """What becomes of the error late in training: how often it stands above 2 %, and its mean over the last epochs."""
    curves = [cell["curve"] for cell in model_cells]
    settled = [[error for epoch, error in curve if epoch > SETTLED_AFTER] for curve in curves]
    last = [[error for epoch, error in curve if epoch > curve[-1][0] - LAST_EPOCHS] for curve in curves]
    return {
        "share_above_2_percent": mean([mean([float(e > SPIKE) for e in errors]) for errors in settled])
        if all(settled)
        else None,
        "mean_of_last_epochs": mean([mean(errors) for errors in last]),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    for column, numbers in columns(result).items():
        elements += [_chart(column, numbers), *_beside_document(column, numbers), _end_table(column, numbers)]
    return elements


def _chart(column: str, numbers: Mapping[str, Any]) -> Chart:
    curves = numbers["curves"]
    lines = [
        ChartLine(MODELS[name].title, [p[0] for p in points], [p[1] for p in points]) for name, points in curves.items()
    ]
    lowest = ", ".join(
        f"{MODELS[name].title} {best:.2f} % at epoch {epoch:.0f}"
        for name, points in curves.items()
        for epoch, best in [min(points, key=lambda p: p[1])]
    )
    top = 2 * mean([points[-1][1] for points in curves.values()])
    return Chart(f"Test error, {column}", f"Lowest: {lowest}.", "epoch", "error, %", lines, y_limits=(0, top))


def _beside_document(column: str, numbers: Mapping[str, Any]) -> list[ResultTable]:
    """The authors' own histories, and ours: the same epochs where both have them."""
    epochs = {name: [p[0] for p in points] for name, points in numbers["curves"].items()}
    if "late" not in numbers or column == "chosen":
        return []
    rows = []
    for name, document in DOCUMENT_ERRORS.items():
        errors = dict(numbers["curves"][name])
        ours = [f"{errors[epoch]:.2f}" if epoch in epochs[name] else "–" for epoch in DOCUMENT_EPOCHS]
        rows += [[MODELS[name].title, "document", *(f"{v:.2f}" for v in document)], [MODELS[name].title, "here", *ours]]
    headers = ("net", "", *(f"epoch {epoch}" for epoch in DOCUMENT_EPOCHS))
    share = numbers["late"]["plain"]["share_above_2_percent"]
    caption = (
        ""
        if share is None
        else (
            f"The plain net errs on more than {SPIKE:g} % at {100 * share:.0f} % of the epochs after the hundredth; "
            f"the authors' at {DOCUMENT_SPIKES} of 500."
        )
    )
    return [ResultTable(f"Beside the authors' nets, {column}", headers, rows, text_columns=2, caption=caption)]


def _end_table(column: str, numbers: Mapping[str, Any]) -> ResultTable:
    rows = [
        [
            MODELS[name].title,
            f"{scores['error']['mean']:.2f}",
            f"{scores['nll']['mean']:.3f}",
            f"{scores['ece']['mean']:.2f}",
        ]
        for name, scores in numbers["at_the_end"].items()
    ]
    return ResultTable(f"At the end, all draws, {column}", ("net", "error %", "NLL", "ECE %"), rows)


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-18",
    order=24,
    group="mnist",
    title="Test error while learning: plain, dropout, belief",
    requirements=("WU-51",),
    run=run,
    reference={
        "document": "the plain net converges first, to a higher error, with periodic spikes; the belief is slower, and "
        "as good as dropout; no numbers are printed",
        "note": "the curve it calls that of the belief with a single Gaussian is, by its code, the net with the "
        "mixture; its nets' own histories stand below",
    },
    left_open=("how many draws a point is taken with: ten, as the authors took; every tenth epoch",),
    durations=("some seconds", "half an hour on a GPU, its nets shared with table 3"),
    show=show,
)
