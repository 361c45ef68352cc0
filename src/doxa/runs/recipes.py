"""Members of rooms by words, as a command line or a settings file gives them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from doxa.errors import BadInput, DoxaError, nearest

COMMAS = re.compile(r",(?![^(]*\))")  # outside of brackets


def member(words: str, room: Mapping[str, Any], what: str) -> Any:
    """The member of a room that words name, with its arguments after a colon or in brackets.

    `gaussian`, `gaussian:0.5`, `scale_mixture:share=0.25,wide=1`, `mean_field:rho=(-5,-4)`,
    `annealed:5,of=tempered(0.1)`
    """
    name, rest = called(words)
    if name not in room:
        raise BadInput(f"there is no {what} {name!r}{nearest(name, room)}")
    kind = room[name]
    positional, named = arguments(rest)
    positional = [_within(value, room, what) for value in positional]
    named = {key: _within(value, room, what) for key, value in named.items()}
    if not callable(kind):
        if positional or named:
            raise BadInput(f"the {what} {name} takes no arguments; got {rest!r}")
        return kind
    try:
        inspect.signature(kind).bind(*positional, **named)
    except TypeError as error:
        known = ", ".join(inspect.signature(kind).parameters) or "nothing"
        raise BadInput(f"{words!r} does not fit the {what} {name} ({error}); it takes: {known}") from None
    try:
        return kind(*positional, **named)
    except (TypeError, ValueError) as error:
        if isinstance(error, DoxaError):
            raise
        raise BadInput(f"{words!r} does not fit the {what} {name}: {error}") from None


def called(words: str) -> tuple[str, str]:
    """A name and the text of its arguments: of `name:arguments` and of `name(arguments)`."""
    words = words.strip()
    found = re.fullmatch(r"(\w+)\((.*)\)", words)
    if found:
        return found[1], found[2]
    name, _, rest = words.partition(":")
    return name, rest


def _within(value: Any, room: Mapping[str, Any], what: str) -> Any:
    """An argument that names a member of the same room as that member."""
    return member(value, room, what) if isinstance(value, str) and called(value)[0] in room else value


def arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Values, then name=value pairs, between commas."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for piece in filter(None, (p.strip() for p in COMMAS.split(text))):
        name, equals, value = piece.partition("=")
        if equals and name.strip().isidentifier():
            if name.strip() in named:
                raise BadInput(f"{name.strip()} is given twice in {text!r}; give it once")
            named[name.strip()] = literal(value)
        elif named:
            raise BadInput(f"{piece!r} has no name but follows {next(reversed(named))}=…; name it too")
        else:
            positional.append(literal(piece))
    return positional, named


def literal(word: str) -> Any:
    """A number, a truth value, none, several of them in brackets, or the word itself."""
    word = word.strip()
    if word.startswith("(") and word.endswith(")"):
        return tuple(literal(part) for part in COMMAS.split(word[1:-1]) if part.strip())
    known = {"true": True, "false": False, "none": None}
    if word.lower() in known:
        return known[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
