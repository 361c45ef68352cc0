"""Other libraries beside Doxa in one table, in every question alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from doxa_bench.contenders import TABLE, LearningTask, describe_libraries, try_library
from doxa_bench.tables import BenchTable, format_number, library_notes, missing_library_notes
from doxa_bench.trainables import TrainableModel

NOISES = ("shared", "local", "flipout")


def trainable_models(
    task: Callable[[str], LearningTask], x: Tensor, y: Tensor
) -> Iterator[tuple[str, str, TrainableModel | str]]:
    """Every noise, every library, and its pupil or why there is none."""
    for noise in NOISES:
        for name, library in TABLE.items():
            yield noise, name, try_library(library, task(noise), x, y)


def describe_all_libraries() -> dict[str, dict[str, Any]]:
    """What a result says of all libraries."""
    return describe_libraries(TABLE.values())


def comparison_table(
    title: str, result: dict[str, Any], columns: dict[str, str], case: str, key: str = "ratio"
) -> BenchTable | None:
    """A row for each noise and library, a column for each kind of net; `case` makes a case's name of kind and noise."""
    rivals, doxa_steps = result.get("rivals", {}), result.get("steps", {})
    measured = [case.partition(" ")[0] for case in (*rivals, *doxa_steps)]
    columns = {kind: shown for kind, shown in columns.items() if kind in measured}
    rows = []
    for noise in NOISES:
        cases = {kind: case.format(kind=kind, noise=noise) for kind in columns}
        for library in ("Doxa", *TABLE):
            figures = [
                doxa_steps.get(c) if library == "Doxa" else rivals.get(c, {}).get(library) for c in cases.values()
            ]
            if any(figures):
                rows.append((noise, library, *(format_number(None if f is None else f[key]) for f in figures)))
    if not any(rivals.values()):
        return None
    notes = [*library_notes(result), *missing_library_notes(result.get("missing", {}))]
    return BenchTable(title, ("noise", "library", *columns.values()), rows, 2, notes)
