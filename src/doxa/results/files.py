"""A result as a file: JSON, written whole, read with suspicion."""

from __future__ import annotations

import json
import math
from os import PathLike
from pathlib import Path
from typing import Any

from doxa.errors import BadInput, BrokenFile
from doxa.results.check import Result, first_problem
from doxa.storage.disk import atomic_write

KIND, FORMAT = "doxa result", 1


def write_result(path: str | PathLike[str], result: Result) -> None:
    """Write a result as JSON, whole or not at all, a section a line; what is not a finite number as null."""
    content = to_plain_json({"kind": KIND, "version": FORMAT, **result})
    problem = first_problem(content)
    if problem is not None:
        raise BadInput(f"this is no result to write to {path}: {problem}")
    lines = (f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in content.items())
    write_text_atomic(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_result(path: str | PathLike[str]) -> Result:
    """The result in a file, only if all of it is as `write_result` would have it."""
    path = Path(path)
    if not path.is_file():
        raise BadInput(
            f"{path} is not a file; give a result that Doxa has written, such as doxa-demo/digits-belief.json"
        )
    try:
        content = to_plain_json(json.loads(path.read_bytes()))
    except OSError as error:
        raise BrokenFile(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    except (ValueError, RecursionError) as error:
        raise BrokenFile(f"{path} is damaged, cut short, or no JSON ({error}); write it again") from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        kind = content.get("kind") if isinstance(content, dict) else type(content).__name__
        raise BrokenFile(f"{path} is JSON, but no Doxa result: its kind is {kind!r}, not {KIND!r}")
    version = content.get("version")
    if isinstance(version, int) and version > FORMAT:
        raise BrokenFile(f"{path} has format version {version}; this Doxa reads up to {FORMAT}: upgrade Doxa")
    problem = first_problem(content)
    if problem is not None:
        raise BrokenFile(f"{path} is a Doxa result whose contents make no sense: {problem}")
    return content


def write_text_atomic(path: str | PathLike[str], text: str) -> None:
    """Write a text file whole or not at all."""
    with atomic_write(Path(path), encoding="utf-8", newline="\n") as file:
        file.write(text)


def to_plain_json(value: Any) -> Any:
    """JSON's own types: numbers of numpy and torch as Python's, tuples as lists, NaN and infinities as null."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): to_plain_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_json(v) for v in value]
    if hasattr(value, "tolist"):
        return to_plain_json(value.tolist())
    raise BadInput(f"a result holds a {type(value).__name__}, which JSON lacks; give numbers, text, lists and tables")
