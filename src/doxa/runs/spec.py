"""What run.json may say, field by field: types, counts and finite numbers, checked before any of it is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from doxa.errors import shorten
from doxa.storage.json_text import first_bad_number

LARGEST = 2**31  # of a count of rows, inputs or outputs
MOST_WORDS = 10_000  # letters of a setting


def spec_problem(spec: Mapping[str, Any]) -> str | None:
    """The first thing that keeps run.json from describing a run, in words that name the field; None if all is well."""
    return first_bad_number(dict(spec)) or next(_problems(spec), None)


def _problems(spec: Mapping[str, Any]) -> Iterator[str]:
    for name, (is_fit, description) in FIELDS.items():
        if name not in spec:
            yield f"it has no field {name!r}"
            return
        if not is_fit(spec[name]):
            yield f"its field {name!r} must be {description}; it is {_show(spec[name])}"
            return
    for name, (is_fit, description) in OPTIONAL_FIELDS.items():
        if spec.get(name) is not None and not is_fit(spec[name]):
            yield f"its field {name!r} must be {description}; it is {_show(spec[name])}"
            return
    if bool(spec["classes"]) is not (spec["task"] == "classification"):
        yield f"its field 'classes' does not fit its task, which is {spec['task']}"
    if len(set(spec["classes"])) < len(spec["classes"]):
        yield "its field 'classes' has a class twice"
    if math.prod(spec["shape"]) > LARGEST:
        yield f"its field 'shape' is that of more than {LARGEST:,} numbers"
    if any(isinstance(unit, list) and len(unit) != spec["outputs"] for unit in spec["units"]):
        yield "its field 'units' does not have a number for each output"
    for name, value in spec["plan"].items():
        if isinstance(value, str) and (len(value) > MOST_WORDS or "\0" in value):
            yield f"its field 'plan.{shorten(name)}' is no setting: {_show(value)}"
    if spec["preparation"] is not None:
        yield from _preparation_problems(spec["preparation"], spec["shape"])


def _preparation_problems(preparation: Mapping[str, Any], shape: list[int]) -> Iterator[str]:
    width = 0
    for k, step in enumerate(preparation["steps"]):
        fields = STEPS.get(step.get("kind")) if isinstance(step.get("kind"), str) else None
        if fields is None:
            yield f"its field 'preparation.steps[{k}].kind' must be one of {', '.join(STEPS)}"
            return
        for name, (is_fit, description) in fields.items():
            if name == "form" and name not in step:  # older runs do not tell
                continue
            if not is_fit(step.get(name)):
                yield f"its field 'preparation.steps[{k}].{name}' must be {description}; it is {_show(step.get(name))}"
                return
        unknown = [name for name in step if name not in fields and name != "kind"]
        if unknown:
            yield f"its field 'preparation.steps[{k}]' has an entry that no step has: {shorten(unknown[0])!r}"
            return
        scaled = step["kind"] == "scaled"
        width += 1 + step["indicated"] if scaled else len(step["levels"]) + bool(step["rare"]) + step["gaps"]
    if shape != [width]:
        yield f"its field 'shape' is {_show(shape)}, but its preparation makes {width:,} columns"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST


def _is_list_of(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_item, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_units(value: Any) -> bool:
    """Centre and scale, each a number or one for each output; no scale is zero."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    if not all(_is_number(unit) or _is_list_of(_is_number)(unit) for unit in value):
        return False
    return all(v > 0 for v in (value[1] if isinstance(value[1], list) else [value[1]]))


def _is_preparation(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or not _is_list_of(_is_table)(value.get("steps")):
        return False
    dropped = value.get("dropped")
    return isinstance(dropped, dict) and all(map(_is_text, dropped.values()))


def _is_reload(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"source", "hold_out", "seed"}:
        return False
    seed = value["seed"]
    return _is_text(value["source"]) and _is_number(value["hold_out"]) and isinstance(seed, int)


def _is_levels(value: Any) -> bool:
    if not _is_list_of(_is_list_of(_is_number))(value) or len(value) != 2:
        return False
    return len(value[0]) == len(value[1]) > 0 and all(0 <= v <= 1 for row in value for v in row)


def _is_pruning(value: Any) -> bool:
    return isinstance(value, dict) and _is_number(value.get("fraction"))


def _show(value: Any) -> str:
    return shorten(repr(value[:60] if isinstance(value, str | list) else value))


Check = tuple[Callable[[Any], bool], str]

FIELDS: dict[str, Check] = {
    "status": (lambda v: v in ("learning", "finished"), "learning or finished"),
    "data": (_is_text, "text"),
    "rows": (lambda v: _is_count(v, 1), "a number of rows"),
    "held_out": (_is_count, "a number of rows"),
    "task": (lambda v: v in ("regression", "classification"), "regression or classification"),
    "target": (_is_text, "text"),
    "classes": (_is_list_of(_is_text), "a list of names"),
    "about": (_is_table, "a table"),
    "shape": (_is_list_of(lambda v: _is_count(v, 1)), "a list of sizes"),
    "outputs": (lambda v: _is_count(v, 1), "a number of outputs"),
    "units": (_is_units, "a centre and a scale above zero, finite numbers"),
    "plan": (_is_table, "a table of settings"),
    "preparation": (_is_preparation, "null, or a table of steps and dropped columns"),
}
OPTIONAL_FIELDS: dict[str, Check] = {
    "form": (_is_text, "text"),
    "again": (_is_reload, "a table of source, hold_out and seed"),
    "digest": (_is_text, "text"),
    "kl_weight": (lambda v: _is_number(v) or _is_text(v), "a number or the name of a schedule"),
    "noise": (lambda v: _is_number(v) and v > 0, "a number above zero"),
    "trials": (_is_list_of(_is_table), "a list of tables"),
    "levels": (_is_levels, "two lists of shares, of one length"),
    "pruned": (_is_pruning, "a table with the fraction"),
}
STEPS: dict[str, dict[str, Check]] = {
    "scaled": {
        "name": (_is_text, "text"),
        "median": (_is_number, "a number"),
        "mean": (_is_number, "a number"),
        "scale": (lambda v: _is_number(v) and v > 0, "a number above zero"),
        "indicated": (_is_bool, "true or false"),
        "form": (_is_text, "text"),
    },
    "one_hot": {
        "name": (_is_text, "text"),
        "levels": (_is_list_of(_is_text), "a list of words"),
        "rare": (_is_list_of(_is_text), "a list of words"),
        "gaps": (_is_bool, "true or false"),
    },
}
