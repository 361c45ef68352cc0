"""A setting: a field of a record, and what help, completion and checks need to know of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Setting:
    """What is said of a setting; its name, type and default are the field's."""

    metavar: str
    help: str
    panel: str | None = None  # of the help that it stands in
    shown: str = ""  # as its default, where that is decided elsewhere
    known: tuple[str, ...] = ()  # names that it takes
    least: int | None = None  # of a count
    argument: bool = False  # a word in its place, not an option


def told(default: Any, metavar: str, words: str, **more: Any) -> Any:
    """The field of a setting."""
    if default is not None and not isinstance(default, bool):
        more = {"shown": f"{default:g}" if isinstance(default, float) else str(default), **more}
    return field(default=default, metadata={"setting": Setting(metavar, words, **more)})


def one_of(known: tuple[str, ...], default: str | None, metavar: str, words: str, **more: Any) -> Any:
    """The field of a setting that names a member of a room; its help begins with their names."""
    return told(default, metavar, f"{', '.join(known)}{words}", known=known, **more)


def settings(record: Any) -> Iterator[tuple[Field[Any], Setting]]:
    """The fields of a record, and what is said of each."""
    for one in fields(record):
        yield one, one.metadata["setting"]


def kind(one: Field[Any]) -> str:
    """The type of a setting by its name, whether or not it may be left out."""
    return str(one.type).removesuffix(" | None")
