"""Other libraries beside Doxa in one table, in every question alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from doxa_bench.contenders import TABLE, Task, described, offered
from doxa_bench.steps import Pupil
from doxa_bench.tables import Table, libraries, number, refusals

NOISES = ("shared", "local", "flipout")


def pupils(task: Callable[[str], Task], x: Tensor, y: Tensor) -> Iterator[tuple[str, str, Pupil | str]]:
    """Every noise, every library, and its pupil or why there is none."""
    for noise in NOISES:
        for name, library in TABLE.items():
            yield noise, name, offered(library, task(noise), x, y)


def known() -> dict[str, dict[str, Any]]:
    """What a result says of all libraries."""
    return described(TABLE.values())


def matrix(title: str, found: dict[str, Any], columns: dict[str, str], case: str, key: str = "ratio") -> Table | None:
    """A row for each noise and library, a column for each kind of net; `case` makes a case's name of kind and noise."""
    rivals, own = found.get("rivals", {}), found.get("steps", {})
    measured = [case.partition(" ")[0] for case in (*rivals, *own)]
    columns = {kind: shown for kind, shown in columns.items() if kind in measured}
    rows = []
    for noise in NOISES:
        cases = {kind: case.format(kind=kind, noise=noise) for kind in columns}
        for library in ("Doxa", *TABLE):
            figures = [own.get(c) if library == "Doxa" else rivals.get(c, {}).get(library) for c in cases.values()]
            if any(figures):
                rows.append((noise, library, *(number(None if f is None else f[key]) for f in figures)))
    if not any(rivals.values()):
        return None
    notes = [*libraries(found), *refusals(found.get("missing", {}))]
    return Table(title, ("noise", "library", *columns.values()), rows, 2, notes)
