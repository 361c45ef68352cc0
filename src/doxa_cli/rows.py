"""Rows with their targets for a run: a table's, or those held out from a named data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from doxa_cli.terminal import Say, reading

if TYPE_CHECKING:
    from torch import Tensor

    from doxa.runs import Opened


@dataclass(frozen=True)
class Rows:
    """Inputs x and targets y as a run's net takes them, and inputs like those it was learned from."""

    name: str
    x: Tensor
    y: Tensor
    training: Tensor


def rows_of(opened: Opened, source: str | None, encoding: str, say: Say) -> Rows | None:
    """The rows of a table or a named data set; else those held out; None where the run came from a table, not kept."""
    from doxa import data
    from doxa.runs import material_of, pairs
    from doxa.tables import read

    if source is None:
        material = material_of(opened)
        return None if material is None else Rows(material.name, *material.test, material.train[0])
    if source in data.TABLE:
        x, y = pairs(opened, source)
        return Rows(source, x, y, x)
    table = read(source, encoding, reading(say))
    x, y = pairs(opened, table)
    return Rows(table.name, x, y, x)


def require_rows(opened: Opened, source: str | None, encoding: str, say: Say) -> Rows:
    """The same, and an error that names the missing argument where there are none."""
    found = rows_of(opened, source, encoding, say)
    if found is not None:
        return found
    from doxa.errors import BadInput, shown

    raise BadInput(
        f"{opened.folder} was learned from {shown(opened.spec['data'])}, a table that is not kept: name a TABLE after "
        f"the run, with rows that have the column {shown(opened.spec['target'])!r}"
    )
