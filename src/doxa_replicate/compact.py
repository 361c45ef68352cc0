"""A result as JSON that is small and still read by eye: an object a line for each key, a list of numbers one line."""

from __future__ import annotations

import json
from typing import Any

SIGNIFICANT_DIGITS = 6  # of a number in a list, such as a curve: more than any chart shows


def round_floats(value: Any, in_list: bool = False) -> Any:
    """JSON's own types with every float inside a list at six significant digits; a number with a name stays whole."""
    if isinstance(value, dict):
        return {key: round_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [round_floats(item, True) for item in value]
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if in_list and isinstance(value, float) else value


def to_compact_json(value: Any, depth: int = 0) -> str:
    """The text: what holds an object has a line for each of its parts, all else is one line."""
    if not _holds_object(value):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key, ensure_ascii=False)}: {to_compact_json(item, depth + 1)}" for key, item in value.items()
        ]
    else:
        items = [to_compact_json(item, depth + 1) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    newline = "\n" + " " * depth
    return opening + ",".join(f"{newline} {item}" for item in items) + newline + closing


def _holds_object(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(_holds_object(item) for item in value)
