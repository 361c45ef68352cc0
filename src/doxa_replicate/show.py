"""How a replication is shown on a page: charts, tables and images, as data; docs draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Column = Sequence[Any]  # numbers; None where one is not known


@dataclass(frozen=True)
class ChartLine:
    """Points that are joined, with a standard error each where there is one; what `like` names has the same colour."""

    name: str
    x: Column
    y: Column
    error: Column | None = None
    dashed: bool = False
    faint: bool = False  # one of many alike, without a key
    like: str | None = None


@dataclass(frozen=True)
class Area:
    """What lies between two curves; what `like` names has the same colour."""

    name: str
    x: Column
    lower: Column
    upper: Column
    like: str | None = None


@dataclass(frozen=True)
class Dots:
    """Points that are not joined: grey, such as training data; or coloured as what `like` names."""

    name: str
    x: Column
    y: Column
    like: str | None = None


@dataclass(frozen=True)
class Contours:
    """Heights [y][x] over a plane, in steps of `levels`: the higher, the more ink."""

    name: str
    x: Column
    y: Column
    height: Sequence[Column]
    levels: Sequence[float]


@dataclass(frozen=True)
class Chart:
    """One pair of axes: `caption` tells in a sentence what is to be seen, with its numbers."""

    title: str
    caption: str
    x: str
    y: str
    lines: Sequence[ChartLine] = ()
    areas: Sequence[Area] = ()
    dots: Sequence[Dots] = ()
    shaded: tuple[float, float] | None = None  # from x to x: where there are training data
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    log_x: bool = False
    log_y: bool = False
    contours: Contours | None = None  # below everything else


@dataclass(frozen=True)
class ResultTable:
    """Cells as they are to be read; the first `text_columns` columns stand to the left, and **best** ones are bold."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    caption: str = ""


@dataclass(frozen=True)
class ImageGrid:
    """Rows of grey images, each [height][width] of numbers from 0 to 1, with a name for each column."""

    title: str
    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Sequence[Sequence[float]]]]


PageElement = Chart | ResultTable | ImageGrid
