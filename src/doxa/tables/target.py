"""What is to be predicted: a number or a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, shown
from doxa.tables.table import Column, Numbers, Table, Words, part

FEW = 20  # so many whole numbers may be classes
CLASSES = 1000  # more are hardly meant


@dataclass(frozen=True)
class Target:
    """The column to predict and its task; a class is named as the table names it."""

    name: str
    task: str  # "regression" or "classification"
    classes: tuple[str, ...] = ()

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"name": self.name, "task": self.task, "classes": list(self.classes)}


def find(table: Table, name: str, task: str | None = None) -> tuple[Target, NDArray[Any], Table]:
    """The target, its values y [N] (float64, or class indices) and the other columns, of the rows that have one.

    Words, and at most 20 different whole numbers, are classes; other numbers are a quantity. `task` decides otherwise.
    """
    target, y, rest = apart(table, name, task)
    if target.task == "regression" and len(np.unique(y)) < 2:
        raise BadInput(f"the target {shown(name)!r} is the same in every row: there is nothing to learn")
    if target.task == "classification" and len(target.classes) < 2:
        only = shown(target.classes[0])
        raise BadInput(f"the target {shown(name)!r} has only the class {only!r}: there is nothing to learn")
    if len(target.classes) > min(CLASSES, len(y) // 2):
        raise BadInput(
            f"the target {shown(name)!r} has {len(target.classes):,} classes in {len(y):,} rows, too many to learn; "
            f'is it a name or an identifier? Choose another target, or task="regression" for numbers'
        )
    return target, y, rest


def apart(table: Table, name: str, task: str | None = None) -> tuple[Target, NDArray[Any], Table]:
    """The target, its values and the other columns, whether or not there is enough of them to learn from."""
    column = table.column(name)
    if task not in (None, "regression", "classification"):
        raise BadInput(f'task must be "regression" or "classification", got {task!r}')
    known = ~column.missing
    if not known.any():
        raise BadInput(f"the target {shown(name)!r} is missing in every row")
    column = part(column, known)
    rest = table.without(name).rows(known)
    if (task or _task(column)) == "classification":
        classes, y = _classes(column)
        return Target(name, "classification", classes), y, rest
    if isinstance(column, Words):
        raise BadInput(f"the target {shown(name)!r} holds words: it cannot be learned by regression")
    if not np.isfinite(column.values).all():
        raise BadInput(f"the target {shown(name)!r} is infinite in some rows")
    return Target(name, "regression"), column.values, rest


def _task(column: Column) -> str:
    if isinstance(column, Words):
        return "classification"
    whole = bool((column.values == np.round(column.values)).all())
    return "classification" if whole and column.distinct <= FEW else "regression"


def _classes(column: Column) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if isinstance(column, Numbers):
        values, y = np.unique(column.values, return_inverse=True)
        return tuple(f"{v:.15g}" for v in values), y.astype(np.int64)
    used = np.unique(column.codes)
    order = sorted(used.tolist(), key=column.levels.__getitem__)
    rank = np.zeros(len(column.levels), np.int64)
    rank[order] = np.arange(len(order))
    return tuple(column.levels[i] for i in order), rank[column.codes]
