"""Where the numbers came from: settings, seeds, versions, device, commit and time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doxa.report.runs import ReportedRun
from doxa.report.text import shorten

LONGEST = 300  # characters of a setting

Row = tuple[str, list[str]]


def settings(runs: Sequence[ReportedRun]) -> list[Row]:
    """Every setting with its value in each run."""
    return _table_rows([run.result.get("settings", {}) for run in runs])


def stamps(runs: Sequence[ReportedRun]) -> list[Row]:
    """Seeds, versions, device, commit and seconds of each run."""
    return _table_rows([_flatten_stamp(run.result.get("stamp", {})) for run in runs])


def _table_rows(tables: Sequence[dict[str, Any]]) -> list[Row]:
    keys = dict.fromkeys(key for table in tables for key in table)
    return [(shorten(key, LONGEST), [_format_value(table.get(key)) for table in tables]) for key in keys]


def _flatten_stamp(stamp: dict[str, Any]) -> dict[str, Any]:
    versions = stamp.get("versions")
    fields = {key: value for key, value in stamp.items() if key not in ("settings", "versions")}
    return fields | ({"versions": [f"{k} {v}" for k, v in versions.items()]} if isinstance(versions, dict) else {})


def _format_value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,}"
    if isinstance(value, list):
        return shorten(", ".join(_format_value(v) for v in value), LONGEST)
    if isinstance(value, dict):
        return shorten("; ".join(f"{k}: {_format_value(v)}" for k, v in value.items()), LONGEST)
    return shorten(value, LONGEST)
