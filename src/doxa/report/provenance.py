"""Where the numbers came from: settings, seeds, versions, device, commit and time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doxa.report.runs import Run
from doxa.report.text import shortened

LONGEST = 300  # characters of a setting

Row = tuple[str, list[str]]


def settings(runs: Sequence[Run]) -> list[Row]:
    """Every setting with its value in each run."""
    return _rows([run.result.get("settings", {}) for run in runs])


def stamps(runs: Sequence[Run]) -> list[Row]:
    """Seeds, versions, device, commit and seconds of each run."""
    return _rows([_flat(run.result.get("stamp", {})) for run in runs])


def _rows(tables: Sequence[dict[str, Any]]) -> list[Row]:
    keys = dict.fromkeys(key for table in tables for key in table)
    return [(shortened(key, LONGEST), [_said(table.get(key)) for table in tables]) for key in keys]


def _flat(stamp: dict[str, Any]) -> dict[str, Any]:
    versions = stamp.get("versions")
    own = {key: value for key, value in stamp.items() if key not in ("settings", "versions")}
    return own | ({"versions": [f"{k} {v}" for k, v in versions.items()]} if isinstance(versions, dict) else {})


def _said(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,}"
    if isinstance(value, list):
        return shortened(", ".join(_said(v) for v in value), LONGEST)
    if isinstance(value, dict):
        return shortened("; ".join(f"{k}: {_said(v)}" for k, v in value.items()), LONGEST)
    return shortened(value, LONGEST)
