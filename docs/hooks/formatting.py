"""Values of results and references, as a page says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cells import table, text

from doxa.report.numbers import SPACE, format_with_error

PROSE = ("document", "note", "words")  # keys of a reference whose text needs no name before it


def format_measured(value: Any, error: Any = None) -> str:
    """What was found, with its standard error where there is one; with the largest, where one stands for several."""
    if isinstance(value, Mapping | list | tuple) and isinstance(error, int | float) and error:
        return f"{format_measured(value)}; standard errors at most {format_measured(error)}"
    if isinstance(value, Mapping):
        errors = error if isinstance(error, Mapping) else {}
        return "; ".join(_labelled(key, each, format_measured(each, errors.get(key))) for key, each in value.items())
    if isinstance(value, list | tuple):
        errors = error if isinstance(error, list | tuple) and len(error) == len(value) else [None] * len(value)
        return " / ".join(format_measured(each, e) for each, e in zip(value, errors, strict=True))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return format_value(value)
    if isinstance(error, int | float):
        return format_with_error(value, error)
    return f"{value:{',.0f' if abs(value) >= 1000 else '.4g'}}".replace("-", "−")


def format_value(value: Any) -> str:
    """A value as the document has it, digit for digit."""
    if isinstance(value, Mapping):
        return "; ".join(_labelled(key, each, format_value(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return " / ".join(map(format_value, value))
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return f"{value:.12g}".replace("-", "−") if isinstance(value, float) else text(value)


def reference(values: Mapping[str, Any]) -> str:
    """The document's own values: tables in tables, text in sentences, and single numbers in one more."""
    tables, numbers, prose = [], [], []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            tables.append(_grid(key, value))
        elif isinstance(value, str):
            prose.append(_sentence(format_value(value) if key in PROSE else f"{_key_text(key)}: {format_value(value)}"))
        else:
            numbers.append(f"{_key_text(key)}: {format_value(value)}")
    sentences = [*prose, *([_sentence("; ".join(numbers))] if numbers else [])]
    return "\n\n".join([*([" ".join(sentences)] if sentences else []), *tables])


def setting(value: Any) -> str:
    """A setting, and those inside it, in a line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {setting(each)}" for key, each in value.items())
    return ", ".join(map(setting, value)) if isinstance(value, list | tuple) else str(value)


def duration(seconds: float) -> str:
    """A time in the unit in which it is short."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g}{SPACE}{unit}"
    return f"{seconds:.0f}{SPACE}s" if seconds >= 1 else "less than a second"


def _grid(name: str, values: Mapping[str, Any]) -> str:
    """A table of two columns; of more where every value has parts of its own."""
    if not all(isinstance(each, Mapping) for each in values.values()):
        return table((_key_text(name), "document"), [(text(key), format_value(each)) for key, each in values.items()])
    columns = list(dict.fromkeys(column for each in values.values() for column in each))
    rows = [(text(key), *(format_value(each.get(c)) for c in columns)) for key, each in values.items()]
    return table((_key_text(name), *map(_key_text, columns)), rows)


def _labelled(key: object, value: Any, value_text: str) -> str:
    """A value after its name; values within it in brackets."""
    return f"{_key_text(key)} ({value_text})" if isinstance(value, Mapping) else f"{_key_text(key)}: {value_text}"


def _key_text(key: object) -> str:
    return text(str(key).replace("_", " "))


def _sentence(sentence: str) -> str:
    sentence = sentence[:1].upper() + sentence[1:]
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
