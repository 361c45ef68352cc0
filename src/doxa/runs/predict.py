"""What a finished run says of new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from doxa import data
from doxa.data.tabular import Tabular
from doxa.errors import BadInput, shorten
from doxa.judge.recalibration import interval
from doxa.predict.draws import Draws
from doxa.runs.folder import SavedRun
from doxa.runs.training_data import TrainingData, as_table, binary_targets, load_training_data, require_known_source
from doxa.storage.disk import atomic_write
from doxa.tables import (
    MAX_DEVIATIONS,
    Table,
    Target,
    as_words,
    class_labels,
    csv_cell,
    read,
    take_rows,
    target_values,
)
from doxa.training.threads import limit_threads

ROWS = 20_000  # at a time

Columns = dict[str, NDArray[Any]]


def predict_table(
    run: SavedRun,
    source: Any,
    *,
    samples: int = 50,
    level: float = 0.9,
    new: str = "error",
    encoding: str = "utf-8",
    say: Callable[[int], None] = lambda rows: None,
) -> Columns:
    """For every row of a table: mean, std, interval, or label and probabilities; and whether it is unlike training.

    A category or gap that training never had is an error, or with new="allow" a row unlike training. `say` hears how
    many rows are done.
    """
    x, unlike = prepare_inputs(run, source, new, encoding)
    parts: list[Columns] = []
    with limit_threads(run.belief.net):
        for rows in np.array_split(np.arange(len(x)), max(1, -(-len(x) // ROWS))):
            draws = run.belief.predict(torch.from_numpy(x[rows]), samples, run.plan.seed)
            parts.append(_class_columns(run, draws) if run.classes else _quantity_columns(run, draws, level))
            say(int(rows[-1]) + 1)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {**columns, "unlike": unlike}


def prepare_inputs(
    run: SavedRun, source: Any, new: str, encoding: str
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The matrix that the net takes, and which rows are unlike those it was learned from."""
    if run.preparation is None:
        raise BadInput(
            f"{run.folder} was learned from {run.spec['data']}, not from a table: it predicts no table's rows"
        )
    if new not in ("error", "allow"):
        raise BadInput(f'new must be "error" or "allow", got {new!r}')
    table = read(source, encoding)
    x, new_by_column = run.preparation.apply(table)
    if new_by_column and new == "error":
        name, rows = next(iter(new_by_column.items()))
        row = int(np.flatnonzero(rows)[0])
        raise BadInput(
            f"row {row + 1} of {shorten(table.name)} has {_describe_cell(table, name, row)} in column "
            f"{shorten(name)!r}, which training never had; mend it, or pass --new allow to predict it all the same, "
            f"marked as unlike"
        )
    unlike: NDArray[np.bool_] = np.any(np.abs(x) >= MAX_DEVIATIONS, axis=1)
    if run.familiarity is not None:
        unlike |= run.familiarity.unlike(x)
    for rows in new_by_column.values():
        unlike |= rows
    return x, unlike


def labelled_rows(run: SavedRun, source: Any, encoding: str = "utf-8") -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets of a table or of a named data set's test rows, to judge or attack the run on."""
    named_source = _load_named(run, source)
    if isinstance(named_source, TrainingData):
        if named_source.classes != run.classes:
            raise BadInput(
                f"{named_source.name} has other classes than {run.spec['data']}, which {run.folder} was learned from"
            )
        return named_source.test[0], _targets_for_net(run, named_source.test[1])
    table = read(source if named_source is None else named_source, encoding)
    target = Target(run.spec["target"], run.task, run.classes, run.spec.get("form", "number"))
    if not run.classes:
        quantity, features = target_values(table, target)
        x, _ = prepare_inputs(run, features, "allow", encoding)
        return torch.from_numpy(x), torch.as_tensor(quantity, dtype=torch.float32)[:, None]
    indices, features = class_labels(table, target)
    x, _ = prepare_inputs(run, features, "allow", encoding)
    return torch.from_numpy(x), _targets_for_net(run, torch.from_numpy(indices))


def _targets_for_net(run: SavedRun, y: torch.Tensor) -> torch.Tensor:
    """Class indices [N] as the run's net answers them: as numbers [N, 1] where it has one output for two classes."""
    return binary_targets(y) if run.has_binary_output else y


def training_data_of(run: SavedRun) -> TrainingData | None:
    """The rows of the named data set that the run was learned from and judged on; None for a table of one's own."""
    reload_arguments = run.spec.get("again")
    return None if reload_arguments is None else run.plan.adapt_data(load_training_data(**reload_arguments))


def foreign_inputs(run: SavedRun, source: Any, encoding: str = "utf-8") -> torch.Tensor:
    """Inputs of a table or a named data set that the run was not made for."""
    named_source = _load_named(run, source)
    if isinstance(named_source, TrainingData):
        return named_source.test[0]
    return torch.from_numpy(prepare_inputs(run, source if named_source is None else named_source, "allow", encoding)[0])


def _load_named(run: SavedRun, source: Any) -> TrainingData | Table | None:
    """A named data set as the run takes it, a table where it learned from one; None for what is no such name."""
    if not isinstance(source, str) or source not in data.TABLE:
        require_known_source(source)
        return None
    if run.preparation is not None:
        data_set = data.load(source)
        if isinstance(data_set, Tabular):
            return as_table(data_set)
        raise BadInput(f"{source} is no table; {run.folder} was learned from one and takes nothing else")
    training_data = load_training_data(source)
    shape, expected_shape = list(training_data.train[0].shape[1:]), run.spec["shape"]
    if shape != expected_shape:
        raise BadInput(f"the rows of {source} have shape {shape}; {run.folder} takes {expected_shape}")
    return training_data


def _quantity_columns(run: SavedRun, draws: Draws, level: float) -> Columns:
    lower, upper = interval(draws, level, run.levels)
    names = {"mean": draws.mean, "std": draws.std, "lower": lower, "upper": upper, "epistemic": draws.epistemic}
    return {name: values[:, 0].double().cpu().numpy() for name, values in names.items()}


def _class_columns(run: SavedRun, draws: Draws) -> Columns:
    p = draws.mean.cpu()
    if run.has_binary_output:
        p = torch.cat([1 - p, p], 1)
    names = np.array(run.classes, dtype=object)
    columns: Columns = {"label": names[p.argmax(1).numpy()], "entropy": draws.entropy().double().cpu().numpy()}
    columns["mutual_information"] = draws.mutual_information().double().cpu().numpy()
    return columns | {f"p({name})": p[:, i].double().numpy() for i, name in enumerate(run.classes)}


def _describe_cell(table: Table, name: str, row: int) -> str:
    column = take_rows(table.columns[name], np.array([row]))
    as_text = as_words(column)
    return "an empty cell" if column.missing[0] else repr(shorten(as_text.levels[as_text.codes[0]], 30))


def write_csv(path: str | PathLike[str], columns: Columns) -> None:
    """Columns as a text file, whole or not at all.

    Text that a spreadsheet would take for a formula, as =A1 or @name, has an apostrophe before it; what holds a mark
    that may divide cells is in quotation marks.
    """
    with atomic_write(Path(path), newline="", encoding="utf-8") as file:
        file.writelines(f"{line}\r\n" for line in csv_lines(columns))


def csv_lines(columns: Columns) -> Iterator[str]:
    """Columns as lines of text, their names first, without the ends of the lines."""
    for row in chain([tuple(map(csv_cell, columns))], _csv_rows(columns)):
        yield ",".join(row) or '""'


def _csv_rows(columns: Columns) -> Iterator[tuple[str, ...]]:
    def cells(values: NDArray[Any]) -> list[str]:
        if values.dtype.kind == "f":
            return [f"{v:.7g}" for v in values.tolist()]
        if values.dtype.kind == "b":
            return ["yes" if v else "no" for v in values]
        return [csv_cell(str(v)) for v in values]

    return zip(*map(cells, columns.values()), strict=True)
