"""A setting: a field of a record, and what help, completion and checks need to know of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class SettingInfo:
    """What is said of a setting; its name, type and default are the field's."""

    metavar: str
    help: str
    panel: str | None = None  # of the help that it stands in
    default_text: str = ""  # as its default, where that is decided elsewhere
    choices: tuple[str, ...] = ()  # names that it takes
    minimum: int | None = None  # of a count
    maximum: int | None = None  # beyond which it would never end
    argument: bool = False  # a word in its place, not an option


def setting_field(default: Any, metavar: str, help_text: str, **details: Any) -> Any:
    """The field of a setting."""
    if default is not None and not isinstance(default, bool):
        details = {"default_text": f"{default:g}" if isinstance(default, float) else str(default), **details}
    return field(default=default, metadata={"setting": SettingInfo(metavar, help_text, **details)})


def name_choices(lead: str, choices: tuple[str, ...], hint: str = "") -> str:
    """The help of a choice: `lead: a, b or c` and then the hint; without the names where these are not known."""
    names = " or ".join(filter(None, (", ".join(choices[:-1]), *choices[-1:])))
    return f"{lead}: {names}{hint}." if names else f"{lead}{hint}."


def choice_field(
    choices: tuple[str, ...], default: str | None, metavar: str, lead: str, hint: str = "", **details: Any
) -> Any:
    """The field of a setting that names a member of a room; its help names them."""
    return setting_field(default, metavar, name_choices(lead, choices, hint), choices=choices, **details)


def setting_fields(record: Any) -> Iterator[tuple[Field[Any], SettingInfo]]:
    """The fields of a record, and what is said of each."""
    for record_field in fields(record):
        yield record_field, record_field.metadata["setting"]


def type_name(record_field: Field[Any]) -> str:
    """The type of a setting by its name, whether or not it may be left out."""
    return str(record_field.type).removesuffix(" | None")
