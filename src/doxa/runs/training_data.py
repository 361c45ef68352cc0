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
from doxa.errors import BadInput, did_you_mean, shorten
from doxa.random.keys import generator
from doxa.tables import Familiarity, Numbers, Preparation, Table, Words, read, require_range, split_trainable_target

LEAST = 10  # rows with a target

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class TrainingData:
    """Rows to learn from and rows to be judged on.

    y are class indices [N]; or a quantity [N, 1] in its own units; or, has_binary_output, 1.0 for the second of two
    classes.
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
    # What `load_training_data` needs to give the same rows; None for a table of one's own.
    reload_arguments: dict[str, Any] | None = None
    form: str = "number"  # in which the target was written
    has_binary_output: bool = False

    @property
    def outputs(self) -> int:
        return 1 if self.has_binary_output else len(self.classes) or 1

    def with_binary_targets(self) -> TrainingData:
        """The same data of two classes with one output to learn: the chance of the second."""
        train, test = ((x, binary_targets(y)) for x, y in (self.train, self.test))
        return replace(self, train=train, test=test, has_binary_output=True)


def binary_targets(y: Tensor) -> Tensor:
    """Indices [N] of two classes as numbers [N, 1]."""
    return y.to(torch.float32).reshape(-1, 1)


def load_training_data(
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
) -> TrainingData:
    """The data in a table (a file, a DataFrame, a mapping) or in a data set of doxa.data by name."""
    if isinstance(source, str) and source in data.TABLE:
        for name, value in {"target": target, "task": task, "drop": drop}.items():
            if value:
                raise BadInput(f"{name} is for a table of your own; {source} has its own columns and target")
        reload_arguments = {"source": source, "hold_out": hold_out, "seed": seed}
        return replace(_load_named(source, hold_out, seed), reload_arguments=reload_arguments)
    require_known_source(source)
    table = read(source, encoding, say)
    if target is None:
        raise BadInput(
            f"name the column of {shorten(table.name)} to predict: --target NAME, one of "
            f"{', '.join(shorten(c, 30) for c in table.columns)}"
        )
    return _from_table(table.without(*drop) if drop else table, target, task, hold_out, keep_constant, seed)


def require_known_source(source: Any) -> None:
    """Refuse a word that is neither a file nor a data set."""
    if isinstance(source, str) and not Path(source).suffix and not Path(source).exists():
        raise BadInput(
            f"there is neither a file nor a data set {shorten(source)!r}{did_you_mean(source, data.TABLE, most=40)}"
        )


def _load_named(name: str, hold_out: float, seed: int) -> TrainingData:
    data_set = data.load(name)
    card = data.card(name)
    about = {"source": card.home, "licence": card.licence}
    if isinstance(data_set, Dataset):
        x, x_test = (torch.from_numpy(part) for part in data_set.images())
        y, y_test = torch.from_numpy(data_set.y_train), torch.from_numpy(data_set.y_test)
        classes = tuple(str(c) for c in range(data_set.classes))
        return TrainingData(name, "classification", "label", classes, (x, y), (x_test, y_test), about)
    if isinstance(data_set, Curve):
        pairs = ((data_set.x_train, data_set.y_train), (data_set.x_test, data_set.y_test))
        train, test = (tuple(torch.as_tensor(v, dtype=torch.float32).reshape(-1, 1) for v in pair) for pair in pairs)
        return TrainingData(name, "regression", "y", (), (train[0], train[1]), (test[0], test[1]), about)
    if isinstance(data_set, Tabular):
        training_data = _from_table(as_table(data_set), data_set.target, data_set.task, hold_out, True, seed)
        return replace(training_data, name=name, about=about)
    raise BadInput(f"{name} is a series of days, not a table of examples; choose another data set to fit")


def as_table(data_set: Tabular) -> Table:
    """A named table as if it had been read from a file."""
    columns: dict[str, Numbers | Words] = {}
    for name, values in zip(data_set.columns, data_set.x.T, strict=True):
        if values.dtype.kind == "f":
            columns[name] = Numbers(values.astype(np.float64))
        else:
            levels, codes = np.unique(values.astype(str), return_inverse=True)
            columns[name] = Words(codes.astype(np.int64), tuple(levels.tolist()))
    if data_set.classes:
        columns[data_set.target] = Words(data_set.y.astype(np.int64), data_set.classes)
    else:
        columns[data_set.target] = Numbers(data_set.y.astype(np.float64))
    return Table(data_set.name, columns)


def _from_table(
    table: Table, name: str, task: str | None, hold_out: float, keep_constant: bool, seed: int
) -> TrainingData:
    if not 0 < hold_out < 1:
        raise BadInput(f"the share of rows held out must lie strictly between 0 and 1, got {hold_out}")
    rows_with_target = int((~table.column(name).missing).sum())
    if 0 < rows_with_target < LEAST:
        raise BadInput(f"{shorten(table.name)} has {rows_with_target} rows with a target; at least {LEAST} are needed")
    require_range(table.without(name))
    target, y, features = split_trainable_target(table, name, task)
    constant_columns = [k for k, c in features.columns.items() if c.distinct == 1 and not c.missing.any()]
    if constant_columns and not keep_constant:
        raise BadInput(
            f"column {shorten(constant_columns[0])!r} has the same value in every row and can teach nothing; leave it "
            f"out with --drop, or keep such columns with --keep-constant"
        )
    held_out = _held_out_mask(y, bool(target.classes), hold_out, seed)
    if (~held_out).sum() < 2:
        raise BadInput(
            f"holding out {hold_out:g} of {len(y):,} rows leaves {(~held_out).sum()} to learn from, and 2 are needed; "
            f"lower --hold-out"
        )
    preparation = Preparation.fit(features.rows(~held_out))
    x, _ = preparation.apply(features)
    labels = torch.as_tensor(y) if target.classes else torch.as_tensor(y, dtype=torch.float32)[:, None]
    inputs = torch.from_numpy(x)
    train, test = ((inputs[m], labels[m]) for m in (torch.from_numpy(~held_out), torch.from_numpy(held_out)))
    notes = [*table.notes, *(f"column {shorten(k)!r} is not used: {why}" for k, why in preparation.dropped.items())]
    rows_without_target = len(table) - len(y)
    if rows_without_target:
        notes.append(f"{rows_without_target:,} rows without a target are left out")
    if not target.classes:
        spread, size = float(np.std(y)), float(np.abs(y).max())
        if spread < 1e-5 * size:
            raise BadInput(
                f"the target {shorten(name)!r} varies by less than 1e-5 of its size: subtract a constant first"
            )
    return TrainingData(
        table.name,
        target.task,
        name,
        target.classes,
        train,
        test,
        notes=tuple(notes),
        preparation=preparation,
        familiarity=Familiarity.fit(x[~held_out]),
        form=target.form,
    )


def _held_out_mask(y: np.ndarray[Any, Any], classes: bool, share: float, seed: int) -> np.ndarray[Any, Any]:
    """Which rows [N] are held out: the share asked for, of every class alike, in an order that the seed decides."""
    order = torch.randperm(len(y), generator=generator((seed, "folds"))).numpy()
    if classes:
        order = order[np.argsort(y[order], kind="stable")]
    exact_share = Fraction(str(share))  # as it was written: ten times 0.1 is 1
    due = np.array([math.ceil(exact_share * count) for count in range(len(y) + 1)])
    held_out = np.zeros(len(y), bool)
    held_out[order] = due[1:] > due[:-1]
    return held_out
