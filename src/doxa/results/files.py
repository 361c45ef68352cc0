"""A result as a file: JSON, written whole, read with suspicion."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from typing import Any

from doxa.errors import BadInput, BrokenFile, shorten
from doxa.results.check import DEEPEST, Result, first_problem
from doxa.storage.disk import atomic_write
from doxa.storage.json_text import LARGEST, SEAL, has_seal, parse_json, read_bounded, to_sealed_bytes
from doxa.storage.source import read_bytes

KIND, FORMAT = "doxa result", 2
EXPECTED = "a result that Doxa has written, such as doxa-demo/digits-belief.json"
UNSEALED = 1  # the format of results without a seal, in files and in memory


def result_bytes(result: Result, path: str | PathLike[str]) -> bytes:
    """A result as the file that holds it: a section a line, what is not a finite number as null, and a seal."""
    content = to_plain_json({**result, "kind": KIND, "version": FORMAT})
    problem = first_problem(content)
    if problem is not None:
        raise BadInput(f"this is no result to write to {path}: {problem}")
    first = {name: content.pop(name) for name in ("kind", "version")}
    return to_sealed_bytes({**first, **content}, ensure_ascii=True)


def write_result(path: str | PathLike[str], result: Result) -> None:
    """Write a result as JSON, whole or not at all, with a seal."""
    raw = result_bytes(result, path)
    with atomic_write(Path(path), "wb") as file:
        file.write(raw)


def read_result(path: str | PathLike[str]) -> Result:
    """The result in a file, only if all of it is as `write_result` would have it, and nothing was changed since."""
    path = Path(path)
    # What is no file is a pipe that was handed over, or refused.
    raw = read_bounded(path) if path.is_file() else read_bytes(path, LARGEST, EXPECTED)
    try:
        content = parse_json(raw)
    except ValueError as error:
        raise BrokenFile(f"{path} is damaged, cut short, or no JSON ({error}); write it again") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        kind = content.get("kind") if isinstance(content, dict) else type(content).__name__
        raise BrokenFile(f"{path} is JSON, but no Doxa result: its kind is {shorten(repr(kind))}, not {KIND!r}")
    version = content.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < UNSEALED:
        raise BrokenFile(f"{path} is damaged: it has a version that Doxa never writes; write it again")
    if version > FORMAT:
        raise BrokenFile(f"{path} has format version {version}; this Doxa reads up to {FORMAT}: upgrade Doxa")
    if (version == FORMAT or SEAL in content) and not has_seal(raw):
        raise BrokenFile(
            f"{path} is damaged: it does not match its seal; restore it from a copy, or have Doxa write it again"
        )
    problem = first_problem(content)
    if problem is not None:
        raise BrokenFile(f"{path} is a Doxa result whose contents make no sense: {problem}")
    # In memory it may be changed: it is no longer what was sealed.
    return {key: UNSEALED if key == "version" else value for key, value in content.items() if key != SEAL}


def write_text_atomic(path: str | PathLike[str], text: str) -> None:
    """Write a text file whole or not at all."""
    with atomic_write(Path(path), encoding="utf-8", newline="\n") as file:
        file.write(text)


def to_plain_json(value: Any, deepest: int = DEEPEST) -> Any:
    """JSON's own types: numbers of numpy and torch as Python's, tuples as lists, NaN and infinities as null."""
    if deepest < 0:
        raise BadInput(f"a result is nested deeper than {DEEPEST} levels; give a flatter one")
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): to_plain_json(v, deepest - 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_json(v, deepest - 1) for v in value]
    if hasattr(value, "tolist"):
        return to_plain_json(value.tolist(), deepest - 1)
    raise BadInput(f"a result holds a {type(value).__name__}, which JSON lacks; give numbers, text, lists and tables")
