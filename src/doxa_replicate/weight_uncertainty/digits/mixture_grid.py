"""Grids of scale mixtures: as the authors tried them, as written, and the one that is chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.published import MIXTURE_ERROR
from doxa_replicate.weight_uncertainty.digits.trainings.judging import Cell
from doxa_replicate.weight_uncertainty.digits.trainings.mixtures import (
    CHOSEN_RECIPE,
    SEED,
    WIDTH,
    chosen_grid_scores,
    mixtures_as_run,
    values_at_edge,
    written_grid_scores,
)
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AS_RUN as RECIPE_AS_RUN,
)
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AS_WRITTEN as RECIPE_AS_WRITTEN,
)
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    HALF_OF_EPOCHS,
    WIDTHS,
    recipe_at_size,
)
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

LIKE_BEST = 15  # mixtures of the grid that is chosen from are shown, the best ones


def run(options: ReplicationOptions) -> Numbers:
    as_run = {width: mixtures_as_run(options, width) for width in WIDTHS}
    return {
        "settings": {
            **training_settings(options),
            "as_run": recipe_at_size(options, replace(RECIPE_AS_RUN, epochs=HALF_OF_EPOCHS)).as_dict(),
            "as_written": recipe_at_size(options, RECIPE_AS_WRITTEN).as_dict() | {"units": WIDTH, "seed": SEED},
            "chosen": recipe_at_size(options, CHOSEN_RECIPE).as_dict() | {"units": WIDTH, "seed": SEED},
            "chosen_by": "validation NLL",
        },
        "seeds": [cell["seed"] for cell in next(iter(as_run[WIDTHS[0]].values()))],
        "columns": {
            AS_RUN: {
                f"{mixture}; {width}": _row(cells)
                for width, by_mixture in as_run.items()
                for mixture, cells in by_mixture.items()
            },
            AS_WRITTEN: _scored(written_grid_scores(options)),
            CHOSEN: _scored(chosen_grid_scores(options)) | {"at_edge": values_at_edge(options)},
        },
    }


def _row(cells: Sequence[Cell]) -> dict[str, Any]:
    """Test errors over seeds: at the end, and as the authors stored the net, with 50 draws and with ten."""
    errors = {
        "last": [cell["last"]["error"] for cell in cells],
        "stored": [cell["stored"]["error"] for cell in cells],
        "stored_as_run": [cell["stored"]["error_as_run"] for cell in cells],
        "stored_at": [float(cell["stored"]["epoch"]) for cell in cells],
    }
    return {name: summary(values) | {"each": values} for name, values in errors.items()}


def _scored(scores_by_mixture: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    return {
        "tried": scores_by_mixture,
        "best": min(scores_by_mixture, key=lambda key: scores_by_mixture[key]["nll"]),
        "lowest_error": min(scores_by_mixture, key=lambda key: scores_by_mixture[key]["error"]),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    columns = result["numbers"].get("columns") or {AS_WRITTEN: result["numbers"]}
    tables = [_authors_table(columns[AS_RUN])] if AS_RUN in columns else []
    return [*tables, *(_grid_table(column, columns[column]) for column in (AS_WRITTEN, CHOSEN) if column in columns)]


def _authors_table(rows: Mapping[str, Any]) -> ResultTable:
    lines = []
    for key, row in rows.items():
        mixture, _, width = key.partition("; ")
        document = MIXTURE_ERROR[mixture][WIDTHS.index(int(width))]
        errors = [format_with_error(row[name], 2) for name in ("stored", "last")]
        lines.append([mixture, width, f"{document:.2f}", *errors, f"{row['stored_at']['mean']:.0f}"])
    headers = ("π, −log σ₁, −log σ₂", "units", "the authors' %", "as stored %", "at the end %", "stored at epoch")
    caption = (
        "Test errors with 50 draws, 300 epochs; the authors' nets, one each, are those whose last minibatch had the "
        "lowest loss so far."
    )
    return ResultTable("As run", headers, lines, text_columns=2, caption=caption)


def _grid_table(column: str, numbers: Mapping[str, Any]) -> ResultTable:
    scores_by_mixture, best = numbers["tried"], numbers["best"]
    keys = list(scores_by_mixture)
    if column == CHOSEN:
        keys = sorted(keys, key=lambda key: float(scores_by_mixture[key]["nll"]))[:LIKE_BEST]
    rows = []
    for key in keys:
        scores, mark = scores_by_mixture[key], "**" * (key == best)
        rows.append([f"{mark}{key}{mark}", f"{scores['nll']:.4f}", f"{scores['error']:.2f}", f"{scores['ece']:.2f}"])
    edge = numbers.get("at_edge")
    caption = f"Lowest NLL: {best}; lowest error: {numbers['lowest_error']}."
    if column == CHOSEN:
        caption += f" The best {len(rows)} of {len(scores_by_mixture)}."
        caption += (
            f" At an edge of what was tried: {', '.join(edge)}." if edge else " None of its values lies at an edge."
        )
    headers = ("π, −log σ₁, −log σ₂", "NLL", "error %", "ECE %")
    return ResultTable(f"Validation rows, {column}", headers, rows, caption=caption)


ARTEFACT = Artefact(
    name="weight-uncertainty/mixture-grid",
    order=19,
    group="mnist",
    title="Scale mixtures: the authors' eight, the document's twenty-seven, and a wider grid",
    requirements=("WU-43",),
    run=run,
    reference={
        "best": "π = ½, −log σ₁ = 0, −log σ₂ = 7",
        "note": "of the 27 its code and stored nets show seven, and an eighth beside them, (1, 0.2); compared on "
        "test rows, as stored when the loss of an epoch's last minibatch was lowest",
    },
    left_open=(
        "by which rows the best was found: on test rows as run; as written and chosen on 10,000 rows of the training "
        "set, with 400 units",
    ),
    departures={
        "full": ("the grid that is chosen from has 100 epochs at a falling rate, and halving shares of the KL",)
    },
    durations=("some seconds", "half an hour on a GPU"),
    show=show,
)
