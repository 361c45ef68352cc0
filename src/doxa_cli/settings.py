"""Settings of a fit: from a TOML file, from --set, from options; the later one counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from doxa_cli.settings_file import parse_toml, read_settings_file, require_plain
from doxa_settings.record import DataSettings, LearningSettings
from doxa_settings.setting import type_name

# Of the rows; the others are those of doxa.runs.Plan.
DATA_TYPES = {field.name: type_name(field) for field in fields(DataSettings)}
IS_TEXT = {
    field.name: type_name(field) in ("str", "Path") for field in (*fields(DataSettings), *fields(LearningSettings))
}
PATHS = ("source", "out")  # whose bytes need not be UTF-8
NOT_GIVEN: tuple[Any, ...] = (None, [], ())  # what an option is that was not given


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


def merge_settings(file: Path | None, assignments: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting that was given anywhere, by name."""
    settings = {} if file is None else _from_file(file)
    settings |= _require_unique(map(_parse_assignment, assignments), "by --set")
    settings |= {name: value for name, value in options.items() if name in IS_TEXT and value not in NOT_GIVEN}
    for name, value in settings.items():
        require_plain(name, value, is_path=name in PATHS, is_name=name in DATA_TYPES)
    # A setting of the rows that is none is as good as not given; Plan knows which of its own may be none.
    settings_given = {name: value for name, value in settings.items() if value is not None or name not in DATA_TYPES}
    return {
        name: _checked_value(name, value) if name in DATA_TYPES else value for name, value in settings_given.items()
    }


def _from_file(path: Path) -> dict[str, Any]:
    table = read_settings_file(path)
    return _require_unique(((_setting_name(name, f" in {path}"), value) for name, value in table.items()), f"in {path}")


def _require_unique(pairs: Iterable[tuple[str, Any]], where: str) -> dict[str, Any]:
    """Settings by name; one that comes twice is refused, since only one of the two would count."""
    from doxa.errors import BadInput

    settings: dict[str, Any] = {}
    for name, value in pairs:
        if name in settings:
            list_hint = f'; several go into one, as in {name}=["a", "b"]' if DATA_TYPES.get(name) == "list[str]" else ""
            raise BadInput(f"the setting {name} is given twice {where}; give it once{list_hint}")
        settings[name] = value
    return settings


def _parse_assignment(assignment: str) -> tuple[str, Any]:
    from doxa.errors import BadInput

    name, equals, text = assignment.partition("=")
    if not equals:
        raise BadInput(f"--set takes name=value, as in --set epochs=20; got {assignment!r}")
    name, text = _setting_name(name.strip(), ""), text.strip()
    try:
        value = parse_toml(f"value = {text}")["value"]
    except ValueError:
        value = text
    if text.lower() == "none":
        return name, None
    return name, text if IS_TEXT[name] and not isinstance(value, str) else value


def _setting_name(name: str, where: str) -> str:
    from doxa.errors import BadInput, did_you_mean

    spelled = name.replace("-", "_")
    if spelled not in IS_TEXT:
        raise BadInput(f"there is no setting {name!r}{where}{did_you_mean(spelled, IS_TEXT, most=40)}")
    return spelled


def _checked_value(name: str, value: Any) -> Any:
    from doxa.errors import BadInput

    is_valid, convert, expected = CHECKS[DATA_TYPES[name]]
    if not is_valid(value):
        raise BadInput(f"the setting {name} must be {expected}; got {value!r}")
    return convert(value)
