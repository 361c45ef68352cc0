"""What is to be predicted: a number or a class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, shorten
from doxa.tables.forms import NUMBER, parse_plain
from doxa.tables.formulas import quote_formula, unquote_formula
from doxa.tables.reread import column_in_form
from doxa.tables.table import EXACT, Column, Numbers, Table, Words, as_words, take_rows

MAX_WHOLE_CLASSES = 20  # so many whole numbers may be classes
MAX_CLASSES = 1000  # more are hardly meant
MIN_DEVIATION, MAX_QUANTITY = 1e-18, 1e18  # of a quantity: a float32 does not hold the squares of others


@dataclass(frozen=True)
class Target:
    """The column to predict and its task; a class is named as the table names it."""

    name: str
    task: str  # "regression" or "classification"
    classes: tuple[str, ...] = ()
    form: str = NUMBER  # in which a quantity is written

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"name": self.name, "task": self.task, "classes": list(self.classes), "form": self.form}


def split_trainable_target(table: Table, name: str, task: str | None = None) -> tuple[Target, NDArray[Any], Table]:
    """The target, its values y [N] (float64, or class indices) and the other columns, of the rows that have one.

    Words, and at most 20 different whole numbers, are classes; other numbers are a quantity. `task` decides otherwise.
    """
    target, y, rest = split_target(table, name, task)
    if target.task == "regression" and len(np.unique(y)) < 2:
        raise BadInput(f"the target {shorten(name)!r} is the same in every row: there is nothing to learn")
    if target.task == "regression" and float(np.std(y)) < MIN_DEVIATION:
        raise BadInput(
            f"the target {shorten(name)!r} varies by {np.std(y):.3g}, less than {MIN_DEVIATION:g}; give it in "
            "smaller units"
        )
    if target.task == "classification" and len(target.classes) < 2:
        only = shorten(target.classes[0])
        raise BadInput(f"the target {shorten(name)!r} has only the class {only!r}: there is nothing to learn")
    if len(target.classes) > min(MAX_CLASSES, len(y) // 2):
        raise BadInput(
            f"the target {shorten(name)!r} has {len(target.classes):,} classes in {len(y):,} rows, too many to learn; "
            f'is it a name or an identifier? Choose another target, or task="regression" for numbers'
        )
    return target, y, rest


def split_target(table: Table, name: str, task: str | None = None) -> tuple[Target, NDArray[Any], Table]:
    """The target, its values and the other columns, whether or not there is enough of them to learn from."""
    column = table.column(name)
    if task not in (None, "regression", "classification"):
        raise BadInput(f'task must be "regression" or "classification", got {task!r}')
    rest = _rows_with_target(table, name)
    column = take_rows(column, ~column.missing)
    if (task or _infer_task(column)) == "classification":
        classes, y = _encode_classes(column)
        return Target(name, "classification", classes), y, rest
    if isinstance(column, Words):
        raise BadInput(f"the target {shorten(name)!r} holds words: it cannot be learned by regression")
    require_quantity(name, column.values)
    return Target(name, "regression", form=column.form), column.values, rest


def require_quantity(name: str, y: NDArray[np.float64]) -> None:
    """Refuse a quantity that is infinite, or too large to be squared."""
    if not np.isfinite(y).all():
        raise BadInput(f"the target {shorten(name)!r} is infinite in some rows; leave such cells empty")
    largest = float(np.abs(y).max())
    if largest > MAX_QUANTITY:
        raise BadInput(
            f"the target {shorten(name)!r} goes up to {largest:.3g}, beyond ±{MAX_QUANTITY:g}; give it in larger units"
        )


def target_values(table: Table, target: Target) -> tuple[NDArray[np.float64], Table]:
    """A target's values in another table, written as they were in training, and the other columns of rows with one."""
    column = column_in_form(table, target.name, target.form)
    rest = _rows_with_target(table, target.name)
    y = column.values[~column.missing]
    require_quantity(target.name, y)
    return y, rest


def class_labels(table: Table, target: Target) -> tuple[NDArray[np.int64], Table]:
    """A target's classes in another table, by number, and the other columns of the rows that have one.

    A class is known by its name; where it is a number, by its value too: 1.0 is 1. So is one that Doxa wrote with an
    apostrophe before it, lest it be a formula, in a column where every formula has one.
    """
    rest = _rows_with_target(table, target.name)
    column = table.column(target.name)
    words = as_words(take_rows(column, ~column.missing))
    classes = _classes_of_levels(words.levels, target, table.name)
    return np.array(classes, np.int64)[words.codes], rest


def _classes_of_levels(levels: Sequence[str], target: Target, name: str) -> list[int]:
    """The class of each level of a column, all read as they stand or all as Doxa writes them."""
    as_they_stand = _classes_by_name(levels, target)
    texts = [unquote_formula(level) for level in levels]
    if texts == [*levels] or any(quote_formula(t) != level for t, level in zip(texts, levels, strict=True)):
        readings = [as_they_stand]
    else:
        readings = [as_they_stand, _classes_by_name(texts, target)]
    complete = [[k for k in reading if k is not None] for reading in readings if None not in reading]
    if not complete:
        unknown = min(range(len(levels)), key=lambda i: [r[i] is not None for r in reversed(readings)])
        raise BadInput(
            f"{shorten(name)} has a class that training never had: {shorten(levels[unknown], 30)!r}; it had: "
            f"{', '.join(shorten(c, 30) for c in target.classes[:20])}"
        )
    if complete[0] != complete[-1]:
        level, text = next(pair for pair in zip(levels, texts, strict=True) if pair[0] != pair[1])
        raise BadInput(
            f"{shorten(name)} has the class {shorten(level, 30)!r}, which may be itself, or {shorten(text, 30)!r} as "
            "Doxa writes it, and training had both; give a table that has rows of both, or name one of them anew"
        )
    return complete[0]


def _classes_by_name(words: Sequence[str], target: Target) -> list[int | None]:
    """The class that each word names; None where it names none."""
    by_name = {name: i for i, name in enumerate(target.classes)}
    counts = Counter(values := [_class_value(name) for name in target.classes])
    by_value = {value: i for i, value in enumerate(values) if value is not None and counts[value] == 1}

    def class_of(word: str) -> int | None:
        value = _class_value(word)
        return by_name.get(word, None if value is None else by_value.get(value))

    return [class_of(word) for word in words]


def _class_value(word: str) -> float | None:
    """The number that a class is named by, where it can be told from its neighbours."""
    value = parse_plain(word)
    return value if value is not None and abs(value) <= EXACT else None


def _rows_with_target(table: Table, name: str) -> Table:
    """The other columns of the rows that have a target."""
    has_target = ~table.column(name).missing
    if not has_target.any():
        raise BadInput(f"the target {shorten(name)!r} is missing in every row")
    return table.without(name).rows(has_target)


def _infer_task(column: Column) -> str:
    if isinstance(column, Words):
        return "classification"
    all_whole = bool((column.values == np.round(column.values)).all())
    return "classification" if all_whole and column.distinct <= MAX_WHOLE_CLASSES else "regression"


def _encode_classes(column: Column) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The classes' names, as they are written in the table, and the class of each row."""
    words = as_words(column)
    if isinstance(column, Numbers) and not (np.abs(column.values) > EXACT).any():
        _, first_rows, y = np.unique(column.values, return_index=True, return_inverse=True)
        return tuple(words.levels[words.codes[i]] for i in first_rows), y.astype(np.int64)
    used = np.unique(words.codes)
    order = sorted(used.tolist(), key=words.levels.__getitem__)
    rank = np.zeros(len(words.levels), np.int64)
    rank[order] = np.arange(len(order))
    return tuple(words.levels[i] for i in order), rank[words.codes]
