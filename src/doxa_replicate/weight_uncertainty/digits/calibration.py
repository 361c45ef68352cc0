"""Figure 19: are scores probabilities?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_number, mean
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import Evidence, paired
from doxa_replicate.weight_uncertainty.digits.score_tables import infinity_note
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.trainings.judging import BINS, Cell, authors_draws
from doxa_replicate.weight_uncertainty.digits.trainings.models import COMPARED_MODELS, MODELS, draw_count
from doxa_replicate.weight_uncertainty.digits.trainings.rows import ROTATION
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

DECIMAL_PLACES = {"error": 2, "nll": 3, "ece": 2, "ece_classwise": 2}
ROW_SETS, SCORE_KINDS = {"clean": "test", "shifted": "shifted"}, ("top", "all classes")
MAX_ACCURACY = 0.75  # at most so many right would be about 70 %
BETTER_CALIBRATED = Claim(
    "C-WU-15",
    "A belief is better calibrated than a plain net and than dropout",
    "ECE of the likeliest class less that of either: below 0, on clean test rows and on rows turned by "
    f"{ROTATION:g}°; all scores of a row count, those of 1 too",
)
OVERCONFIDENT = Claim(
    "C-WU-16",
    "Of what a plain net is quite sure, only 70 % is right",
    f"share right among scores of all classes from 0.9 to 1, 1 itself left out: at most {100 * MAX_ACCURACY:g} % for "
    "the plain net, and higher by dropout and by the belief",
)


def run(options: ReplicationOptions) -> Numbers:
    columns = cells_by_column(options, COMPARED_MODELS)
    seeds = [cell["seed"] for cell in columns[AS_RUN]["plain"]]
    return {
        "settings": {
            "units": 1200,
            "bins": {"drawn": BINS, "ECE": 15},
            "shifted": f"turned by {ROTATION:g}°",
            **training_settings(options, [(name, 1200) for name in COMPARED_MODELS]),
            "draws": {"as drawn": authors_draws(options), "else": draw_count(options)},
        },
        "seeds": seeds,
        "columns": {column: calibration(values) for column, values in columns.items()},
        "verdicts": [verdict for column, values in columns.items() for verdict in _judge(values, seeds, column)],
    }


def _judge(cells_by_model: Mapping[str, Sequence[Cell]], seeds: Sequence[int], column: str) -> list[Verdict]:
    ece_gaps = {
        f"{row_set}, belief less {MODELS[other].title}": paired(
            [cell[row]["ece"] for cell in cells_by_model["gaussian"]],
            [cell[row]["ece"] for cell in cells_by_model[other]],
            below=0.0,
        )
        for row_set, row in ROW_SETS.items()
        for other in ("plain", "dropout")
    }
    right = {name: [_last_drawn(cell) for cell in values] for name, values in cells_by_model.items()}
    overconfidence = {"plain net": Evidence(right["plain"], below=MAX_ACCURACY)} | {
        f"{MODELS[name].title} less plain net": paired(right[name], right["plain"], above=0.0)
        for name in ("dropout", "gaussian")
    }
    return [
        BETTER_CALIBRATED.decide(ece_gaps, seeds, column, "points of ECE, fifteen bins"),
        OVERCONFIDENT.decide(overconfidence, seeds, column, "share right"),
    ]


def _last_drawn(cell: Cell) -> float | None:
    """The share right in the last bin that is drawn; None where it is empty."""
    accuracy: float | None = cell["reliability"]["as drawn"]["accuracy"][BINS - 1]
    return accuracy


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
        "as_drawn": {
            name: {
                "right": mean_of_known([_last_drawn(c) for c in model_cells]),
                "in the bin": mean([c["reliability"]["as drawn"]["count"][BINS - 1] for c in model_cells]),
                "beyond it": mean([c["reliability"]["as drawn"]["count"][BINS] for c in model_cells]),
                "right beyond it": mean_of_known([c["reliability"]["as drawn"]["accuracy"][BINS] for c in model_cells]),
            }
            for name, model_cells in cells_by_model.items()
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
    charts = [_chart_as_drawn(numbers, column) for column, numbers in columns.items() if "as_drawn" in numbers]
    charts += [
        _chart(numbers, column, row_set, kind)
        for column, numbers in columns.items()
        for row_set in ROW_SETS
        for kind in (SCORE_KINDS if column == AS_WRITTEN else SCORE_KINDS[:1])
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
    scores_table = ResultTable("Scores", headers, rows, text_columns=3, caption=infinity_note(rows))
    return [*charts, *_table_as_drawn(columns), scores_table]


def _table_as_drawn(columns: Mapping[str, Any]) -> list[ResultTable]:
    """What the document's last point stands for, and what it leaves out."""
    rows = [
        [
            MODELS[name].title,
            column,
            _per_cent(values["right"]),
            f"{values['in the bin']:,.0f}",
            f"{values['beyond it']:,.0f}",
            _per_cent(values["right beyond it"]),
        ]
        for column, numbers in columns.items()
        for name, values in numbers.get("as_drawn", {}).items()
    ]
    headers = ("net", "trained", "right of 0.9 to 1, %", "scores there", "scores of 1, not drawn", "right of them, %")
    return [ResultTable("The last point as it was drawn", headers, rows, text_columns=2)] if rows else []


def _per_cent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _chart_as_drawn(numbers: Mapping[str, Any], column: str) -> Chart:
    lines = [
        ChartLine(
            MODELS[name].title,
            diagrams["as drawn"]["confidence"][:BINS],
            diagrams["as drawn"]["accuracy"][:BINS],
        )
        for name, diagrams in numbers["reliability"].items()
    ]
    lines.append(ChartLine("what was said", [0, 1], [0, 1], dashed=True))
    last = ", ".join(f"{MODELS[n].title} {_per_cent(v['right'])} %" for n, v in numbers["as_drawn"].items())
    caption = (
        f"Scores of all classes in ten bins, those of 1 left out, as the authors drew them. Right at the end: {last}."
    )
    title = f"As the document draws it, {column}"
    return Chart(title, caption, "score", "share right", lines, x_limits=(0, 1), y_limits=(0, 1))


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
        "note": "its code sorts the scores of all classes by the whole part of ten times each, and does not draw the "
        "eleventh bin, where scores of 1 are: nearly all of the plain net's. So 70 % is said of what is left",
    },
    left_open=(
        "which scores are sorted into bins, and of which rows: as run all classes of clean rows, 1 left out; beside it "
        "the likeliest class, all classes, clean, turned",
    ),
    durations=("some seconds", "22 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
