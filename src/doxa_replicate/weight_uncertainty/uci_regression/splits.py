"""The published splits of a set, each in units of its own training rows, as tables that fleets learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from doxa import data
from doxa.errors import BadInput
from doxa.random.keys import generator

FEW_ROWS = 2_000  # training rows: fewer than these are set aside in turn, all of them
FOLDS = 5


@dataclass(frozen=True)
class Splits:
    """S splits of one set, standardised: training rows of all of them as one table, test rows apart from it.

    x' = (x − mean) / std of the split's training rows, and y' likewise; a column that does not vary there is only
    centred. Rows of split s are s·n to (s + 1)·n − 1 of `x` [S·n, D] and `y` [S·n]; `unit` [S] is the std of y.
    """

    name: str
    numbers: tuple[int, ...]  # as published
    x: Tensor
    y: Tensor
    x_test: Tensor  # [S, m, D]
    y_test: Tensor  # [S, m]
    unit: Tensor

    @property
    def rows_per_split(self) -> int:
        """n: training rows of a split."""
        return len(self.y) // len(self.numbers)

    @property
    def folds(self) -> int:
        """How often rows of a split are set aside: once, or all of them in turn where they are few."""
        return FOLDS if self.rows_per_split < FEW_ROWS else 1

    def all_rows(self, split: int) -> Tensor:
        """Every training row of a split, by its place in the table."""
        return torch.arange(split * self.rows_per_split, (split + 1) * self.rows_per_split)

    def fold(self, split: int, number: int) -> tuple[Tensor, Tensor]:
        """Training rows of a split to learn from, and the fifth that is set aside to choose by; as many each time."""
        order = torch.randperm(self.rows_per_split, generator=generator((self.numbers[split], "rows set aside")))
        fold_size = math.floor(self.rows_per_split / FOLDS)
        held_out = torch.zeros(self.rows_per_split, dtype=torch.bool)
        held_out[order[number * fold_size : (number + 1) * fold_size]] = True
        rows = self.all_rows(split)
        return rows[~held_out], rows[held_out]


def standardised_splits(name: str, numbers: Sequence[int]) -> Splits:
    """Some of a set's published splits, in units of their training rows."""
    table = data.uci_regression(name)
    if not numbers or not set(numbers) <= set(range(len(table.splits))):
        raise BadInput(f"{name} has splits 0 to {len(table.splits) - 1}; got {list(numbers)}")
    arrays, units = [], []
    for number in numbers:
        (x, y), (x_test, y_test) = table.split(number)
        units.append(float(y.std()))
        arrays.append([*_standardise(x, x, x_test), *_standardise(y, y, y_test)])
    inputs, test_inputs, targets, test_targets = (
        torch.as_tensor(np.stack(arrays_of_kind), dtype=torch.float32) for arrays_of_kind in zip(*arrays, strict=True)
    )
    unit = torch.tensor(units, dtype=torch.float64)
    return Splits(name, tuple(numbers), inputs.flatten(0, 1), targets.flatten(), test_inputs, test_targets, unit)


def _standardise(rows: NDArray[Any], *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Centred and divided by the standard deviation of some rows, where that is more than a rounding error."""
    mean, spread = rows.mean(0), rows.std(0)
    varies = spread > 1e-9 * np.abs(rows).max(0)
    return [(values - mean) / np.where(varies, spread, 1.0) for values in arrays]
