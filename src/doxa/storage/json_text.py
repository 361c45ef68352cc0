"""JSON as Doxa writes it, canonical or with a seal, and what it takes for JSON of its own when it reads.

A sealed object's last entry is the SHA-256 of every byte before it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from doxa.errors import BrokenFile, shorten

DEEPEST = 100  # lists within lists that a header may have
HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that Doxa never writes
SEAL = "seal"
LARGEST = 2**28  # bytes of a file that is read
LONGEST = 40  # digits of a whole number; a longer one is read as infinite, which no field takes
TAIL = re.compile(rb'"seal": "([0-9a-f]{64})"\n}\n')


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


def to_sealed_bytes(fields: Mapping[str, Any], ensure_ascii: bool = False) -> bytes:
    """Fields as JSON, a line each, and the seal."""
    lines = (
        f"{json.dumps(key, ensure_ascii=ensure_ascii)}: {json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False)}"
        for key, value in fields.items()
        if key != SEAL
    )
    # Half a character, as in "\ud800", is no UTF-8; JSON takes it as it is escaped.
    body = ("{\n" + "".join(f"{line},\n" for line in lines)).encode("utf-8", "backslashreplace")
    return body + f'"{SEAL}": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def has_seal(raw: bytes) -> bool:
    """Whether text ends with a seal, and every byte before it is as it was sealed."""
    start = raw.rfind(b"\n", 0, -3) + 1
    match = TAIL.fullmatch(raw, start)
    return match is not None and hashlib.sha256(raw[:start]).hexdigest().encode() == match[1]


def parse_json(raw: bytes) -> Any:
    """A value in JSON, whose numbers may be infinite where they are larger than any; ValueError where there is none."""
    try:
        return json.loads(raw, parse_int=_parse_whole, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_bounded(path: Path, largest: int = LARGEST) -> bytes:
    """A file that is there, at most so large; what cannot be read is not called damaged."""
    try:
        if not path.is_file():
            raise BrokenFile(f"{path} is not a file; expected one written by Doxa")
        with open(path, "rb") as file:
            raw = file.read(largest + 1)
    except OSError as error:
        if isinstance(error, BrokenFile):
            raise
        raise BrokenFile(f"{path} cannot be read ({error.strerror or error}); check its permissions") from None
    if len(raw) > largest:
        raise BrokenFile(
            f"{path} is larger than {largest:,} bytes, as no such file of Doxa's is; restore it from a copy"
        )
    return raw


def first_bad_number(value: Any, deepest: int = 64) -> str | None:
    """The first field that holds an infinite number or is nested too deeply, by its path; None where there is none."""
    pending: list[tuple[str, Any, int]] = [("", value, 0)]
    while pending:
        path, item, depth = pending.pop()
        if depth > deepest:
            return f"its field {shorten(path, 80)!r} is nested deeper than {deepest} levels"
        if isinstance(item, float) and not math.isfinite(item):
            return f"its field {shorten(path, 80)!r} holds a number larger than any that Doxa writes"
        if isinstance(item, dict):
            children = [(f"{path}.{key}" if path else str(key), child, depth + 1) for key, child in item.items()]
            pending += reversed(children)
        elif isinstance(item, list):
            pending += [(f"{path}[{k}]", child, depth + 1) for k, child in reversed([*enumerate(item)])]
    return None


def _parse_whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST else math.copysign(math.inf, -1 if digits[0] == "-" else 1)


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no number in JSON")
