"""Rows of numbers that are read a few at a time, wherever they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from doxa.errors import BadInput

BLOCK = 1 << 18  # numbers that are read at a time
SEGMENT = 1 << 20  # bytes of rows that are sealed together, one row if it has more


class SampleRows(Protocol):
    """Rows that are read when they are asked for."""

    @property
    def columns(self) -> int: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> Tensor:
        """Rows `start` to `stop` in fresh memory, [stop − start, columns]."""
        ...


@dataclass(frozen=True)
class JoinedRows:
    """The first `width` numbers of other rows, and behind them rows [S, E] that are in memory."""

    rows: SampleRows
    width: int
    tail: Tensor

    @property
    def columns(self) -> int:
        return self.width + self.tail.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.rows.dtype

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, start: int, stop: int) -> Tensor:
        """Rows `start` to `stop` in fresh memory."""
        head = self.rows.read(start, stop)
        return torch.cat([head[:, : self.width], self.tail[start:stop].to(head)], 1)


@dataclass
class NotFinite:
    """The columns [C] of rows in which NaN or infinity was met; None while there are none."""

    columns: Tensor | None = None

    def note(self, rows: Tensor) -> None:
        """Look at some of the rows."""
        if are_finite(rows):
            return
        columns = rows.isfinite().logical_not().any(0)
        self.columns = columns if self.columns is None else self.columns | columns


def blocks(rows: Tensor | SampleRows) -> list[tuple[int, int]]:
    """Spans of rows that are read at a time."""
    columns = rows.shape[1] if isinstance(rows, Tensor) else rows.columns
    rows_per_block = max(1, BLOCK // max(1, columns))
    return [(start, min(len(rows), start + rows_per_block)) for start in range(0, len(rows), rows_per_block)]


def segment_rows(columns: int, dtype: torch.dtype) -> int:
    """Rows that are sealed together."""
    return max(1, SEGMENT // max(1, columns * dtype.itemsize))


def are_finite(values: Tensor) -> bool:
    """Whether no number is NaN or infinite."""
    # A sum is quick, and never finite if one of its numbers is not; the sum of finite ones may leave the finite.
    return bool(values.sum().isfinite()) or bool(values.isfinite().all())


def require_within(start: int, stop: int, count: int) -> None:
    """Refuse a span that leaves the rows that there are."""
    if not 0 <= start <= stop <= count:
        raise BadInput(f"rows {start} to {stop} were asked for, but there are {count}")
