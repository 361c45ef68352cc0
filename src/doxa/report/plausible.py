"""Results as their page can hold them: every number one that a float holds, and a count one of rows."""

from __future__ import annotations

import sys
from typing import Any

from doxa.results import Result

EXACT = 2**53  # up to here a float tells whole numbers apart
DEEPEST = 12  # tables within tables that are shown
MOST_ROWS = 1e30  # that a bin is taken to hold
COUNTS = {"reliability": ("count",), "entropy": ("inside", "outside"), "signal_to_noise": ("count",)}


def plausible(result: Result) -> Result:
    """The result with its whole numbers bounded, counts from 0 up, and what is nested without end left out."""
    bounded: Result = _bounded(result, 0)
    for section, names in COUNTS.items():
        table = bounded.get(section)
        if isinstance(table, dict):
            bounded[section] = table | {name: [_count(v) for v in table[name]] for name in names if name in table}
    return bounded


def _bounded(value: Any, depth: int) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= EXACT else _float(value)
    if isinstance(value, dict | list) and depth > DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {name: _bounded(each, depth + 1) for name, each in value.items()}
    return [_bounded(each, depth + 1) for each in value] if isinstance(value, list) else value


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def _count(value: float) -> float:
    return min(MOST_ROWS, max(0, value))
