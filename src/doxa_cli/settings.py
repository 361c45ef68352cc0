"""Settings of a fit: from a TOML file, from --set, from options; the later one counts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from doxa_settings.record import Knobs, Rows
from doxa_settings.setting import kind

KINDS = {one.name: kind(one) for one in fields(Rows)}  # of the rows; the others are those of doxa.runs.Plan
TEXTS = {one.name: kind(one) in ("str", "Path") for one in (*fields(Rows), *fields(Knobs))}
NOTHING: tuple[Any, ...] = (None, [], ())  # what an option is that was not given


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_names(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(v, str) for v in value))


# Of each kind, whether a value fits, what it becomes, and how the kind is called.
CHECKS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any], str]] = {
    "str": (lambda v: isinstance(v, str), str, "text"),
    "Path": (lambda v: isinstance(v, str | Path), str, "text"),
    "bool": (lambda v: isinstance(v, bool), bool, "true or false"),
    "float": (_is_number, float, "a number"),
    "list[str]": (_are_names, lambda v: [v] if isinstance(v, str) else list(v), "a list of names"),
}


def merged(file: Path | None, assignments: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting that was given anywhere, by name."""
    found = {} if file is None else _from_file(file)
    found |= _each_once(map(_assigned, assignments), "by --set")
    found |= {name: value for name, value in options.items() if name in TEXTS and value not in NOTHING}
    # A setting of the rows that is none is as good as not given; Plan knows which of its own may be none.
    given = {name: value for name, value in found.items() if value is not None or name not in KINDS}
    return {name: _checked(name, value) if name in KINDS else value for name, value in given.items()}


def _from_file(path: Path) -> dict[str, Any]:
    from doxa.errors import BadInput

    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"the settings in {path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise BadInput(f"{path} is not TOML: {error}") from None
    return _each_once(((_known(name, f" in {path}"), value) for name, value in found.items()), f"in {path}")


def _each_once(pairs: Iterable[tuple[str, Any]], where: str) -> dict[str, Any]:
    """Settings by name; one that comes twice is refused, since only one of the two would count."""
    from doxa.errors import BadInput

    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            several = f'; several go into one, as in {name}=["a", "b"]' if KINDS.get(name) == "list[str]" else ""
            raise BadInput(f"the setting {name} is given twice {where}; give it once{several}")
        found[name] = value
    return found


def _assigned(assignment: str) -> tuple[str, Any]:
    from doxa.errors import BadInput

    name, equals, word = assignment.partition("=")
    if not equals:
        raise BadInput(f"--set takes name=value, as in --set epochs=20; got {assignment!r}")
    name, word = _known(name.strip(), ""), word.strip()
    try:
        value = tomllib.loads(f"value = {word}")["value"]
    except ValueError:
        value = word
    if word.lower() == "none":
        return name, None
    return name, word if TEXTS[name] and not isinstance(value, str) else value


def _known(name: str, where: str) -> str:
    from doxa.errors import BadInput, nearest

    spelled = name.replace("-", "_")
    if spelled not in TEXTS:
        raise BadInput(f"there is no setting {name!r}{where}{nearest(spelled, TEXTS, most=40)}")
    return spelled


def _checked(name: str, value: Any) -> Any:
    from doxa.errors import BadInput

    fits, made, wanted = CHECKS[KINDS[name]]
    if not fits(value):
        raise BadInput(f"the setting {name} must be {wanted}; got {value!r}")
    return made(value)
