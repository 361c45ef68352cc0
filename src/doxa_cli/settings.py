"""Settings of a fit: from a TOML file, from --set, from options; the later one counts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

KINDS: dict[str, type] = {
    "source": str,
    "target": str,
    "task": str,
    "drop": list,
    "keep_constant": bool,
    "hold_out": float,
    "encoding": str,
    "out": str,
}  # besides those of doxa.runs.Plan
NOTHING: tuple[Any, ...] = (None, [], ())  # what an option is that was not given


def merged(file: Path | None, assignments: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting that was given anywhere, by name."""
    texts = _texts()
    found = {} if file is None else _from_file(file)
    found |= _each_once((_assigned(assignment, texts) for assignment in assignments), "by --set")
    found |= {name: value for name, value in options.items() if name in texts and value not in NOTHING}
    # A setting of the rows that is none is as good as not given; Plan knows which of its own may be none.
    given = {name: value for name, value in found.items() if value is not None or name not in KINDS}
    return {name: _checked(name, value) if name in KINDS else value for name, value in given.items()}


def _texts() -> dict[str, bool]:
    """The known settings, and whether each is text."""
    from doxa.runs import Plan

    plan = {field.name: str(field.type).startswith("str") for field in fields(Plan)}
    return {**{name: kind is str for name, kind in KINDS.items()}, **plan}


def _from_file(path: Path) -> dict[str, Any]:
    from doxa.errors import BadInput

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"the settings in {path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise BadInput(f"{path} is not TOML: {error}") from None
    texts = _texts()
    return _each_once(((_known(name, texts, f" in {path}"), value) for name, value in found.items()), f"in {path}")


def _each_once(pairs: Iterable[tuple[str, Any]], where: str) -> dict[str, Any]:
    """Settings by name; one that comes twice is refused, since only one of the two would count."""
    from doxa.errors import BadInput

    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            several = f'; several go into one, as in {name}=["a", "b"]' if KINDS.get(name) is list else ""
            raise BadInput(f"the setting {name} is given twice {where}; give it once{several}")
        found[name] = value
    return found


def _assigned(assignment: str, texts: Mapping[str, bool]) -> tuple[str, Any]:
    from doxa.errors import BadInput

    name, equals, word = assignment.partition("=")
    if not equals:
        raise BadInput(f"--set takes name=value, as in --set epochs=20; got {assignment!r}")
    name, word = _known(name.strip(), texts, ""), word.strip()
    try:
        value = tomllib.loads(f"value = {word}")["value"]
    except ValueError:
        value = word
    if word.lower() == "none":
        return name, None
    return name, word if texts[name] and not isinstance(value, str) else value


def _known(name: str, known: Mapping[str, bool], where: str) -> str:
    from doxa.errors import BadInput, nearest

    spelled = name.replace("-", "_")
    if spelled not in known:
        raise BadInput(f"there is no setting {name!r}{where}{nearest(spelled, known, most=40)}")
    return spelled


def _checked(name: str, value: Any) -> Any:
    from doxa.errors import BadInput

    kind = KINDS[name]
    if kind is list and isinstance(value, str):
        return [value]
    if kind is list and isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return list(value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind in (str, bool) and isinstance(value, kind | Path):
        return str(value) if kind is str else value
    wanted = {str: "text", list: "a list of names", bool: "true or false", float: "a number"}[kind]
    raise BadInput(f"the setting {name} must be {wanted}; got {value!r}")
