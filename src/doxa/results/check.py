"""What a result must look like; a section that is missing is well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from doxa.errors import shorten
from doxa.storage.json_text import first_bad_number

DEEPEST = 64  # levels of a result
LARGEST = 2**64  # of a whole number; seeds are smaller

# The columns of each section, all of one length; `edges` are one more. Those after "?" may be missing.
COLUMNS = {
    "reliability": "confidence accuracy count",
    "entropy": "edges inside ? outside",
    "pruning": "share ? error rmse se",
    "signal_to_noise": "edges count",
    "intervals": "level coverage ? se",
    "band": "x mean lower upper ? aleatoric_lower aleatoric_upper",
    "attack": "radius accuracy ? se",
}
PAIRS = {"band": (("train_x", "train_y"), ("truth_x", "truth_y"))}
NEVER_NULL = {
    "edges",
    "inside",
    "outside",
    "count",
    "share",
    "level",
    "radius",
    "x",
    "train_x",
    "truth_x",
}  # null nowhere

Result = dict[str, Any]


def first_problem(result: Any) -> str | None:
    """The first thing that keeps a value from being a result, in words; None where all is well."""
    return first_bad_number(result, DEEPEST) or next(_problems(result), None)


def _problems(result: Any) -> Iterator[str]:
    if not isinstance(result, dict):
        yield f"it must be a table of sections, not a {type(result).__name__}"
        return
    if not isinstance(result.get("name"), str):
        yield "it has no name"
    scores = result.get("scores")
    if not isinstance(scores, dict) or not all(
        isinstance(s, dict) and _is_number(s.get("value")) for s in scores.values()
    ):
        yield 'its scores must be a table of {"value": number or null, ...}'
    else:
        for name, score in scores.items():
            error, count = score.get("error"), score.get("count", 1)
            if not _is_number(error) or not _is_whole(count) or (error or 0) < 0 or count < 0:
                yield f"the error or the count of its score {shorten(repr(name))} is no number from 0 up"
            if not isinstance(score.get("over", ""), str):
                yield f"what the error of its score {shorten(repr(name))} is over must be text"
    for section in ("data", "settings", "stamp"):
        if not isinstance(result.get(section, {}), dict):
            yield f"its section {section!r} must be a table"
            return
    for section, fields in FIELDS.items():
        for name, (is_fit, description) in fields.items():
            value = result.get(section, {}).get(name)
            if value is not None and not is_fit(value):
                yield f"the field {name!r} of its section {section!r} must be {description}"
    if not _is_list_of(result.get("findings", []), lambda finding: isinstance(finding, str)):
        yield "its findings must be sentences"
    if not _is_list_of(
        result.get("history", []), lambda row: isinstance(row, dict) and all(map(_is_number, row.values()))
    ):
        yield "its history must be a list of tables of numbers"
    if not _is_list_of(result.get("unsure", []), _is_unsure_input):
        yield "its section 'unsure' must be a list of images with a label and probabilities"
    for section in COLUMNS:
        if section in result:
            yield from _column_problems(section, result[section])


def _column_problems(section: str, table: Any) -> Iterator[str]:
    if not isinstance(table, dict):
        yield f"its section {section!r} must be a table of columns"
        return
    needed, _, allowed = COLUMNS[section].partition("?")
    names = needed.split()
    present = [*names, *(name for name in allowed.split() if name in table)]
    paired = PAIRS.get(section, ())
    columns = [*present, *(name for pair in paired for name in pair if name in table)]
    for name in columns:
        if not _is_list_of(table.get(name), _is_non_null_number if name in NEVER_NULL else _is_number):
            or_null = "" if name in NEVER_NULL else " or null"
            yield f"column {name!r} of its section {section!r} must be a list of numbers{or_null}"
            return
    sizes = {len(table[name]) - (name == "edges") for name in present}
    sizes_agree = len(sizes) == 1 and all(len(table.get(a, [])) == len(table.get(b, [])) for a, b in paired)
    if not sizes_agree or sizes == {0}:
        yield f"the columns of its section {section!r} differ in length or are empty"
    if section == "pruning" and not {"error", "rmse"} & set(present):
        yield "its section 'pruning' has neither error nor rmse"


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, float) or _is_whole(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_non_null_number(value: Any) -> bool:
    return value is not None and _is_number(value)


def _is_list_of(value: Any, is_item: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(is_item, value))


def _is_unsure_input(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("label"), int | str):
        return False
    return _is_image(row.get("image")) and _is_list_of(row.get("probabilities"), _is_number)


def _is_image(image: Any) -> bool:
    """Rows of equally many pixels, all of them grey or all of them of three colours."""
    if not _is_list_of(image, lambda line: isinstance(line, list)) or len({len(line) for line in image}) != 1:
        return False
    pixels = [pixel for line in image for pixel in line]
    grey = all(map(_is_number, pixels))
    return bool(pixels) and (grey or all(_is_list_of(pixel, _is_number) and len(pixel) == 3 for pixel in pixels))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


# What is shown or added up of other sections; each may be missing or null.
FIELDS: dict[str, dict[str, tuple[Callable[[Any], bool], str]]] = {
    "data": {
        "name": (_is_text, "text"),
        "rows": (_is_whole, "a whole number"),
        "task": (_is_text, "text"),
        "classes": (lambda value: _is_list_of(value, _is_text), "a list of names"),
    },
    "stamp": {
        "seconds": (_is_number, "a number"),
        "seeds": (lambda value: _is_list_of(value, _is_whole), "a list of whole numbers"),
    },
}
