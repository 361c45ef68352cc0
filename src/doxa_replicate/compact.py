"""A result as JSON that is small and still read by eye: an object a line for each key, a list of numbers one line."""

from __future__ import annotations

import json
from typing import Any

DIGITS = 6  # of a number in a list, such as a curve: more than any chart shows


def rounded(value: Any, listed: bool = False) -> Any:
    """JSON's own types with every float inside a list at six significant digits; a number with a name stays whole."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each, True) for each in value]
    return float(f"{value:.{DIGITS}g}") if listed and isinstance(value, float) else value


def compact(value: Any, depth: int = 0) -> str:
    """The text: what holds an object has a line for each of its parts, all else is one line."""
    if not _has_object(value):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, dict):
        inner = [f"{json.dumps(key, ensure_ascii=False)}: {compact(each, depth + 1)}" for key, each in value.items()]
    else:
        inner = [compact(each, depth + 1) for each in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    space = "\n" + " " * depth
    return opening + ",".join(f"{space} {each}" for each in inner) + space + closing


def _has_object(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(_has_object(each) for each in value)
