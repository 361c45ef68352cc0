"""What a finished run says of new rows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from doxa import data
from doxa.data.tabular import Tabular
from doxa.errors import BadInput, shown
from doxa.judge.recalibration import interval
from doxa.kernels.threads import threads
from doxa.predict.draws import Draws
from doxa.runs.folder import Opened
from doxa.runs.material import Material, as_table, gathered, require_known, yes_or_no
from doxa.storage.disk import replacing
from doxa.tables import FAR, Table, Target, as_words, labels, part, quantities, read

ROWS = 20_000  # at a time

Columns = dict[str, NDArray[Any]]


def predict_table(
    run: Opened,
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
    x, unlike = prepared(run, source, new, encoding)
    parts: list[Columns] = []
    with threads(run.belief.net):
        for rows in np.array_split(np.arange(len(x)), max(1, -(-len(x) // ROWS))):
            draws = run.belief.predict(torch.from_numpy(x[rows]), samples, run.plan.seed)
            parts.append(_classes(run, draws) if run.classes else _quantity(run, draws, level))
            say(int(rows[-1]) + 1)
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {**found, "unlike": unlike}


def prepared(run: Opened, source: Any, new: str, encoding: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The matrix that the net takes, and which rows are unlike those it was learned from."""
    if run.preparation is None:
        raise BadInput(
            f"{run.folder} was learned from {run.spec['data']}, not from a table: it predicts no table's rows"
        )
    if new not in ("error", "allow"):
        raise BadInput(f'new must be "error" or "allow", got {new!r}')
    table = read(source, encoding)
    x, odd = run.preparation.apply(table)
    if odd and new == "error":
        name, rows = next(iter(odd.items()))
        row = int(np.flatnonzero(rows)[0])
        raise BadInput(
            f"row {row + 1} of {shown(table.name)} has {_cell(table, name, row)} in column {shown(name)!r}, which "
            f"training never had; mend it, or pass --new allow to predict it all the same, marked as unlike"
        )
    unlike: NDArray[np.bool_] = np.any(np.abs(x) >= FAR, axis=1)
    if run.familiarity is not None:
        unlike |= run.familiarity.unlike(x)
    for rows in odd.values():
        unlike |= rows
    return x, unlike


def pairs(run: Opened, source: Any, encoding: str = "utf-8") -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets of a table or of a named data set's test rows, to judge or attack the run on."""
    named = _named(run, source)
    if isinstance(named, Material):
        if named.classes != run.classes:
            raise BadInput(
                f"{named.name} has other classes than {run.spec['data']}, which {run.folder} was learned from"
            )
        return named.test[0], _answered(run, named.test[1])
    table = read(source if named is None else named, encoding)
    target = Target(run.spec["target"], run.task, run.classes, run.spec.get("form", "number"))
    if not run.classes:
        quantity, rest = quantities(table, target)
        x, _ = prepared(run, rest, "allow", encoding)
        return torch.from_numpy(x), torch.as_tensor(quantity, dtype=torch.float32)[:, None]
    indices, rest = labels(table, target)
    x, _ = prepared(run, rest, "allow", encoding)
    return torch.from_numpy(x), _answered(run, torch.from_numpy(indices))


def _answered(run: Opened, y: torch.Tensor) -> torch.Tensor:
    """Class indices [N] as the run's net answers them: as numbers [N, 1] where it has one output for two classes."""
    return yes_or_no(y) if run.yes_or_no else y


def material_of(run: Opened) -> Material | None:
    """The rows of the named data set that the run was learned from and judged on; None for a table of one's own."""
    again = run.spec.get("again")
    return None if again is None else run.plan.suited(gathered(**again))


def foreign(run: Opened, source: Any, encoding: str = "utf-8") -> torch.Tensor:
    """Inputs of a table or a named data set that the run was not made for."""
    named = _named(run, source)
    if isinstance(named, Material):
        return named.test[0]
    return torch.from_numpy(prepared(run, source if named is None else named, "allow", encoding)[0])


def _named(run: Opened, source: Any) -> Material | Table | None:
    """A named data set as the run takes it, a table where it learned from one; None for what is no such name."""
    if not isinstance(source, str) or source not in data.TABLE:
        require_known(source)
        return None
    if run.preparation is not None:
        found = data.load(source)
        if isinstance(found, Tabular):
            return as_table(found)
        raise BadInput(f"{source} is no table; {run.folder} was learned from one and takes nothing else")
    material = gathered(source)
    shape, wanted = list(material.train[0].shape[1:]), run.spec["shape"]
    if shape != wanted:
        raise BadInput(f"the rows of {source} have shape {shape}; {run.folder} takes {wanted}")
    return material


def _quantity(run: Opened, draws: Draws, level: float) -> Columns:
    lower, upper = interval(draws, level, run.levels)
    names = {"mean": draws.mean, "std": draws.std, "lower": lower, "upper": upper, "epistemic": draws.epistemic}
    return {name: values[:, 0].double().cpu().numpy() for name, values in names.items()}


def _classes(run: Opened, draws: Draws) -> Columns:
    p = draws.mean.cpu()
    if run.yes_or_no:
        p = torch.cat([1 - p, p], 1)
    names = np.array(run.classes, dtype=object)
    found: Columns = {"label": names[p.argmax(1).numpy()], "entropy": draws.entropy().double().cpu().numpy()}
    found["mutual_information"] = draws.mutual_information().double().cpu().numpy()
    return found | {f"p({name})": p[:, i].double().numpy() for i, name in enumerate(run.classes)}


def _cell(table: Table, name: str, row: int) -> str:
    column = part(table.columns[name], np.array([row]))
    words = as_words(column)
    return "an empty cell" if column.missing[0] else repr(shown(words.levels[words.codes[0]], 30))


def write_csv(path: str | PathLike[str], columns: Columns) -> None:
    """Columns as a text file, whole or not at all."""
    with replacing(Path(path), newline="", encoding="utf-8") as file:
        file.writelines(f"{line}\r\n" for line in csv_lines(columns))


def csv_lines(columns: Columns) -> Iterator[str]:
    """Columns as lines of text, their names first, without the ends of the lines."""
    line = StringIO(newline="")
    writer = csv.writer(line, lineterminator="")
    for row in chain([tuple(columns)], _rows(columns)):
        writer.writerow(row)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _rows(columns: Columns) -> Iterator[tuple[str, ...]]:
    def cells(values: NDArray[Any]) -> list[str]:
        if values.dtype.kind == "f":
            return [f"{v:.7g}" for v in values.tolist()]
        return ["yes" if v else "no" for v in values] if values.dtype.kind == "b" else [str(v) for v in values]

    return zip(*map(cells, columns.values()), strict=True)
