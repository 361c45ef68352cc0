"""Rows of columns, and one column to predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doxa.errors import BadInput, require_whole

Split = tuple[NDArray[np.int64], NDArray[np.int64]]
Part = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Tabular:
    """A table: what is known of each row, and what is to be predicted.

    x: [N, D], floating with NaN where a value is missing, or letters;  columns: D names
    y: int64 [N] from 0 to len(classes) − 1, or float64 [N] where there are no classes
    splits: pairs of the indices to train on and to test with
    """

    name: str
    x: NDArray[Any]
    y: NDArray[Any]
    columns: tuple[str, ...]
    target: str
    classes: tuple[str, ...] = ()
    splits: tuple[Split, ...] = ()

    @property
    def task(self) -> str:
        """What is asked of a learner: "classification" or "regression"."""
        return "classification" if self.classes else "regression"

    def split(self, number: int) -> tuple[Part, Part]:
        """The rows (x, y) to train on and those to test with, by one of the `splits`."""
        if not self.splits:
            raise BadInput(f"{self.name} has no published splits; cut its {len(self.x)} rows as you see fit")
        if not 0 <= require_whole("number", number, least=None) < len(self.splits):
            raise BadInput(f"{self.name} has no split {number}; its splits are 0 to {len(self.splits) - 1}")
        train, test = self.splits[number]
        return (self.x[train], self.y[train]), (self.x[test], self.y[test])
