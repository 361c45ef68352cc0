"""What a run learns from: rows as tensors, and how they came from a table or a named data set."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa import data
from doxa.data.dataset import Dataset
from doxa.data.sets.curve import Curve
from doxa.data.tabular import Tabular
from doxa.errors import BadInput, nearest, shown
from doxa.random.keys import generator
from doxa.tables import Familiarity, Numbers, Preparation, Table, Words, find, read, require_range

LEAST = 10  # rows with a target

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Material:
    """Rows to learn from and rows to be judged on.

    y are class indices [N]; or a quantity [N, 1] in its own units; or, yes_or_no, 1.0 for the second of two classes.
    """

    name: str
    task: str  # "regression" or "classification"
    target: str
    classes: tuple[str, ...]
    train: Pair
    test: Pair
    about: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    preparation: Preparation | None = None
    familiarity: Familiarity | None = None
    again: dict[str, Any] | None = None  # what `gathered` needs to give the same rows; None for a table of one's own
    form: str = "number"  # in which the target was written
    yes_or_no: bool = False

    @property
    def outputs(self) -> int:
        return 1 if self.yes_or_no else len(self.classes) or 1

    def answered(self) -> Material:
        """The same material of two classes with one output to learn: the chance of the second."""
        train, test = ((x, yes_or_no(y)) for x, y in (self.train, self.test))
        return replace(self, train=train, test=test, yes_or_no=True)


def yes_or_no(y: Tensor) -> Tensor:
    """Indices [N] of two classes as numbers [N, 1]."""
    return y.to(torch.float32).reshape(-1, 1)


def gathered(
    source: Any,
    target: str | None = None,
    *,
    task: str | None = None,
    hold_out: float = 0.1,
    drop: tuple[str, ...] = (),
    keep_constant: bool = False,
    encoding: str = "utf-8",
    seed: int = 0,
    say: Callable[[int], None] = lambda rows: None,
) -> Material:
    """The material in a table (a file, a DataFrame, a mapping) or in a data set of doxa.data by name."""
    if isinstance(source, str) and source in data.TABLE:
        for name, given in {"target": target, "task": task, "drop": drop}.items():
            if given:
                raise BadInput(f"{name} is for a table of your own; {source} has its own columns and target")
        again = {"source": source, "hold_out": hold_out, "seed": seed}
        return replace(_named(source, hold_out, seed), again=again)
    require_known(source)
    table = read(source, encoding, say)
    if target is None:
        raise BadInput(
            f"name the column of {shown(table.name)} to predict: --target NAME, one of "
            f"{', '.join(shown(c, 30) for c in table.columns)}"
        )
    return _tabled(table.without(*drop) if drop else table, target, task, hold_out, keep_constant, seed)


def require_known(source: Any) -> None:
    """Refuse a word that is neither a file nor a data set."""
    if isinstance(source, str) and not Path(source).suffix and not Path(source).exists():
        raise BadInput(
            f"there is neither a file nor a data set {shown(source)!r}{nearest(source, data.TABLE, most=40)}"
        )


def _named(name: str, hold_out: float, seed: int) -> Material:
    found = data.load(name)
    card = data.card(name)
    about = {"source": card.home, "licence": card.licence}
    if isinstance(found, Dataset):
        x, x_test = (torch.from_numpy(part) for part in found.images())
        y, y_test = torch.from_numpy(found.y_train), torch.from_numpy(found.y_test)
        classes = tuple(str(c) for c in range(found.classes))
        return Material(name, "classification", "label", classes, (x, y), (x_test, y_test), about)
    if isinstance(found, Curve):
        pairs = ((found.x_train, found.y_train), (found.x_test, found.y_test))
        train, test = (tuple(torch.as_tensor(v, dtype=torch.float32).reshape(-1, 1) for v in pair) for pair in pairs)
        return Material(name, "regression", "y", (), (train[0], train[1]), (test[0], test[1]), about)
    if isinstance(found, Tabular):
        made = _tabled(as_table(found), found.target, found.task, hold_out, True, seed)
        return replace(made, name=name, about=about)
    raise BadInput(f"{name} is a series of days, not a table of examples; choose another data set to fit")


def as_table(found: Tabular) -> Table:
    """A named table as if it had been read from a file."""
    columns: dict[str, Numbers | Words] = {}
    for name, values in zip(found.columns, found.x.T, strict=True):
        if values.dtype.kind == "f":
            columns[name] = Numbers(values.astype(np.float64))
        else:
            levels, codes = np.unique(values.astype(str), return_inverse=True)
            columns[name] = Words(codes.astype(np.int64), tuple(levels.tolist()))
    if found.classes:
        columns[found.target] = Words(found.y.astype(np.int64), found.classes)
    else:
        columns[found.target] = Numbers(found.y.astype(np.float64))
    return Table(found.name, columns)


def _tabled(table: Table, name: str, task: str | None, hold_out: float, keep_constant: bool, seed: int) -> Material:
    if not 0 < hold_out < 1:
        raise BadInput(f"the share of rows held out must lie strictly between 0 and 1, got {hold_out}")
    known = int((~table.column(name).missing).sum())
    if 0 < known < LEAST:
        raise BadInput(f"{shown(table.name)} has {known} rows with a target; at least {LEAST} are needed")
    require_range(table.without(name))
    target, y, rest = find(table, name, task)
    same = [k for k, c in rest.columns.items() if c.distinct == 1 and not c.missing.any()]
    if same and not keep_constant:
        raise BadInput(
            f"column {shown(same[0])!r} has the same value in every row and can teach nothing; leave it out with "
            f"--drop, or keep such columns with --keep-constant"
        )
    aside = _aside(y, bool(target.classes), hold_out, seed)
    if (~aside).sum() < 2:
        raise BadInput(
            f"holding out {hold_out:g} of {len(y):,} rows leaves {(~aside).sum()} to learn from, and 2 are needed; "
            f"lower --hold-out"
        )
    preparation = Preparation.learned(rest.rows(~aside))
    x, _ = preparation.apply(rest)
    labels = torch.as_tensor(y) if target.classes else torch.as_tensor(y, dtype=torch.float32)[:, None]
    inputs = torch.from_numpy(x)
    train, test = ((inputs[m], labels[m]) for m in (torch.from_numpy(~aside), torch.from_numpy(aside)))
    notes = [*table.notes, *(f"column {shown(k)!r} is not used: {why}" for k, why in preparation.dropped.items())]
    gone = len(table) - len(y)
    if gone:
        notes.append(f"{gone:,} rows without a target are left out")
    if not target.classes:
        spread, size = float(np.std(y)), float(np.abs(y).max())
        if spread < 1e-5 * size:
            raise BadInput(
                f"the target {shown(name)!r} varies by less than 1e-5 of its size: subtract a constant first"
            )
    return Material(
        table.name,
        target.task,
        name,
        target.classes,
        train,
        test,
        notes=tuple(notes),
        preparation=preparation,
        familiarity=Familiarity.learned(x[~aside]),
        form=target.form,
    )


def _aside(y: np.ndarray[Any, Any], classes: bool, share: float, seed: int) -> np.ndarray[Any, Any]:
    """Which rows [N] are held out: the share asked for, of every class alike, in an order that the seed decides."""
    order = torch.randperm(len(y), generator=generator((seed, "folds"))).numpy()
    if classes:
        order = order[np.argsort(y[order], kind="stable")]
    part = Fraction(str(share))  # as it was written: ten times 0.1 is 1
    due = np.array([math.ceil(part * count) for count in range(len(y) + 1)])
    aside = np.zeros(len(y), bool)
    aside[order] = due[1:] > due[:-1]
    return aside
