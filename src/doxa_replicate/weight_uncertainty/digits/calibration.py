"""Figure 19: are scores probabilities?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_number, mean, standard_error
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.score_tables import infinity_note
from doxa_replicate.weight_uncertainty.digits.trainings.cells import Cell
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.trainings.models import COMPARED_MODELS, MODELS
from doxa_replicate.weight_uncertainty.digits.trainings.rows import ROTATION

DECIMAL_PLACES = {"error": 2, "nll": 3, "ece": 2, "ece_classwise": 2}
ROW_SETS, SCORE_KINDS = {"clean": "test", "shifted": "shifted"}, ("top", "all classes")
MAX_ACCURACY = 0.75  # at most so many right would be about 70 %
BETTER_CALIBRATED = Claim(
    "C-WU-15",
    "A belief is better calibrated than a plain net and than dropout",
    f"ECE of the likeliest class below both, on clean test rows and on rows turned by {ROTATION:g}°",
)
OVERCONFIDENT = Claim(
    "C-WU-16",
    "Of what a plain net is quite sure, only 70 % is right",
    f"accuracy of the likeliest class in the uppermost of ten bins, clean test rows: at most {100 * MAX_ACCURACY:g} %",
)


def run(options: ReplicationOptions) -> Numbers:
    columns = cells_by_column(options, COMPARED_MODELS)
    as_written = columns["as written"]
    seeds = [cell["seed"] for cell in as_written["plain"]]
    ece = {
        row_set: {name: [c[row]["ece"] for c in values] for name, values in as_written.items()}
        for row_set, row in ROW_SETS.items()
    }
    top_accuracy = not_empty([cell["reliability"]["clean"]["top"]["accuracy"][-1] for cell in as_written["plain"]])
    best_models = {row_set: min(values, key=lambda name: mean(values[name])) for row_set, values in ece.items()}
    return {
        "settings": {"units": 1200, "bins": {"drawn": 10, "ECE": 15}, "shifted": f"turned by {ROTATION:g}°"},
        "seeds": seeds,
        "columns": {column: calibration(values) for column, values in columns.items()},
        "verdicts": [
            BETTER_CALIBRATED.judge(
                all(name == "gaussian" for name in best_models.values()),
                {f"{row_set}, {name}": mean(v) for row_set, values in ece.items() for name, v in values.items()},
                max(standard_error(v) or 0.0 for values in ece.values() for v in values.values()),
                seeds,
                "as written; ECE in per cent, fifteen bins",
            ),
            OVERCONFIDENT.judge(
                mean(top_accuracy) <= MAX_ACCURACY if top_accuracy else None,
                100 * mean(top_accuracy) if top_accuracy else None,
                100 * (standard_error(top_accuracy) or 0.0),
                seeds,
                "as written; a net wrong on 2 % cannot be right on only 70 % of nearly all rows",
            ),
        ],
    }


def calibration(cells_by_model: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    """Diagrams of the first seed; scores and the uppermost bin, means over seeds."""
    return {
        "reliability": {name: model_cells[0]["reliability"] for name, model_cells in cells_by_model.items()},
        "scores": {
            row_set: {
                name: {key: mean([c[row][key] for c in model_cells]) for key in DECIMAL_PLACES}
                for name, model_cells in cells_by_model.items()
            }
            for row_set, row in ROW_SETS.items()
        },
        "top_bin": {
            row_set: {
                name: {
                    kind: {
                        "accuracy": mean_of_known(
                            [c["reliability"][row_set][kind]["accuracy"][-1] for c in model_cells]
                        ),
                        "share": mean([_top_bin_share(c["reliability"][row_set][kind]["count"]) for c in model_cells]),
                    }
                    for kind in SCORE_KINDS
                }
                for name, model_cells in cells_by_model.items()
            }
            for row_set in ROW_SETS
        },
    }


def not_empty(values: Sequence[float | None]) -> list[float]:
    """Those of bins that are not empty."""
    return [v for v in values if v is not None]


def mean_of_known(values: Sequence[float | None]) -> float | None:
    return mean(not_empty(values)) if not_empty(values) else None


def _top_bin_share(counts: Sequence[int]) -> float:
    return counts[-1] / sum(counts)


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    columns = result["numbers"]["columns"]
    charts_shown = [("as written", row_set, kind) for row_set in ROW_SETS for kind in SCORE_KINDS] + [
        ("chosen", row_set, "top") for row_set in ROW_SETS
    ]
    rows = [
        [
            row_set,
            MODELS[name].title,
            column,
            *(format_number(scores[key], places) for key, places in DECIMAL_PLACES.items()),
        ]
        for column, numbers in columns.items()
        for row_set, by_model in numbers["scores"].items()
        for name, scores in by_model.items()
    ]
    headers = ("rows", "net", "trained", "error %", "NLL", "ECE %", "ECE % by class")
    charts = [_chart(columns[chart_key[0]], *chart_key) for chart_key in charts_shown]
    return [*charts, ResultTable("Scores", headers, rows, text_columns=3, caption=infinity_note(rows))]


def _chart(numbers: Mapping[str, Any], column: str, row_set: str, kind: str) -> Chart:
    lines = [
        ChartLine(MODELS[name].title, diagrams[row_set][kind]["confidence"], diagrams[row_set][kind]["accuracy"])
        for name, diagrams in numbers["reliability"].items()
    ]
    lines.append(ChartLine("what was said", [0, 1], [0, 1], dashed=True))
    title, caption = f"{row_set}, {kind}, {column}".capitalize(), _caption(numbers["top_bin"][row_set], kind)
    return Chart(title, caption, "score", "share right", lines, x_limits=(0, 1), y_limits=(0, 1))


def _caption(top_bins: Mapping[str, Any], kind: str) -> str:
    accuracy_text = ", ".join(
        f"{MODELS[name].title} {100 * by_kind[kind]['accuracy']:.1f} % ({100 * by_kind[kind]['share']:.0f} % of all)"
        for name, by_kind in top_bins.items()
        if by_kind[kind]["accuracy"] is not None
    )
    return f"Right in the uppermost bin: {accuracy_text or 'nothing, since it is empty'}."


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-19",
    order=25,
    group="mnist",
    title="Calibration on clean and on turned digits",
    requirements=("WU-52",),
    run=run,
    claims=(BETTER_CALIBRATED, OVERCONFIDENT),
    reference={
        "right at a score of about 1, %": {"plain": 70, "dropout": 90, "belief": 100},
        "note": "a net that is wrong on 1.83 % cannot be right on 70 % of the bin that holds nearly all rows",
    },
    left_open=(
        "which scores are sorted into bins, and of which rows: the likeliest class, all classes, clean, turned",
    ),
    durations=("some seconds", "22 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
