"""The columns of an artefact: as its authors ran it, as it is written, and as validation rows would have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AS_RUN, AS_WRITTEN, CHOSEN = "as run", "as written", "chosen"


def columns(result: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a result by column; those of one that has no columns are as written."""
    numbers = result["numbers"]
    by_column: dict[str, Any] = numbers.get("columns") or {AS_WRITTEN: numbers}
    return by_column
