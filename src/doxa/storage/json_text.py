"""JSON as Doxa writes it, and what it takes for JSON of its own when it reads."""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 100  # lists within lists that a header may have
HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that Doxa never writes


def canonical_json(value: Any) -> str:
    """The one text that a value has as JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def parse_object(text: str) -> dict[str, Any]:
    """A JSON object whose texts are Unicode, nested no deeper than Doxa nests; a ValueError says what else it is."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None
    if not isinstance(value, dict):
        raise ValueError(f"it is a {type(value).__name__}, not an object")
    require_shallow(value)
    if HALF_CHARACTER.search(text):
        canonical_json(value).encode()  # a UnicodeEncodeError is a ValueError
    return value


def require_shallow(value: Any) -> None:
    """Refuse, by a ValueError, what is nested so deep that only harm is meant by it."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list | tuple)
        ]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {DEEPEST} levels")
