"""Members of rooms by words, as a command line or a settings file gives them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from doxa.errors import BadInput, DoxaError, did_you_mean
from doxa.registry import load_plugins

COMMAS = re.compile(r",(?![^(]*\))")  # outside of brackets


def build_member(text: str, choices: Mapping[str, Any], kind_name: str) -> Any:
    """The member of a room that words name, with its arguments after a colon or in brackets.

    `gaussian`, `gaussian:0.5`, `scale_mixture:share=0.25,wide=1`, `mean_field:rho=(-5,-4)`,
    `annealed:5,of=tempered(0.1)`
    """
    name, arguments_text = split_call(text)
    choice = find_member(name, choices, kind_name)
    positional, keywords = parse_member_arguments(arguments_text, choices, kind_name)
    if not callable(choice):
        if positional or keywords:
            raise BadInput(f"the {kind_name} {name} takes no arguments; got {arguments_text!r}")
        return choice
    return call_member(choice, text, kind_name, positional, keywords)


def has_member(name: str, choices: Mapping[str, Any]) -> bool:
    """Whether a room has a member of this name, if need be one that an installed plugin registers."""
    if name not in choices:
        load_plugins()
    return name in choices


def find_member(name: str, choices: Mapping[str, Any], kind_name: str) -> Any:
    """The member of a room by its name."""
    if not has_member(name, choices):
        raise BadInput(f"there is no {kind_name} {name!r}{did_you_mean(name, choices)}")
    return choices[name]


def call_member(
    maker: Callable[..., Any], text: str, kind_name: str, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What a member makes of arguments that `text` gives; what it does not take is refused in words."""
    signature = inspect.signature(maker)
    try:
        signature.bind(*positional, **keywords)
    except TypeError as error:
        raise misfit(signature, text, kind_name, error) from None
    try:
        return maker(*positional, **keywords)
    except (TypeError, ValueError) as error:
        if isinstance(error, DoxaError):
            raise
        raise BadInput(f"{text!r} does not fit the {kind_name} {split_call(text)[0]}: {error}") from None


def misfit(signature: inspect.Signature, text: str, kind_name: str, error: TypeError) -> BadInput:
    """What is said of arguments that a member does not take, or of one that it lacks."""
    parameters = ", ".join(signature.parameters) or "nothing"
    return BadInput(f"{text!r} does not fit the {kind_name} {split_call(text)[0]} ({error}); it takes: {parameters}")


def split_call(text: str) -> tuple[str, str]:
    """A name and the text of its arguments: of `name:arguments` and of `name(arguments)`."""
    text = text.strip()
    match = re.fullmatch(r"(\w+)\((.*)\)", text)
    if match:
        return match[1], match[2]
    name, _, arguments_text = text.partition(":")
    return name, arguments_text


def parse_member_arguments(text: str, choices: Mapping[str, Any], kind_name: str) -> tuple[list[Any], dict[str, Any]]:
    """Values, then name=value pairs, between commas; one that names a member of the same room is that member."""
    positional, keywords = parse_arguments(text)
    return (
        [_resolve_nested(value, choices, kind_name) for value in positional],
        {key: _resolve_nested(value, choices, kind_name) for key, value in keywords.items()},
    )


def _resolve_nested(value: Any, choices: Mapping[str, Any], kind_name: str) -> Any:
    """An argument that names a member of the same room as that member."""
    return (
        build_member(value, choices, kind_name) if isinstance(value, str) and split_call(value)[0] in choices else value
    )


def parse_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Values, then name=value pairs, between commas."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in filter(None, (p.strip() for p in COMMAS.split(text))):
        name, equals, value = argument.partition("=")
        if equals and name.strip().isidentifier():
            if name.strip() in keywords:
                raise BadInput(f"{name.strip()} is given twice in {text!r}; give it once")
            keywords[name.strip()] = parse_literal(value)
        elif keywords:
            raise BadInput(f"{argument!r} has no name but follows {next(reversed(keywords))}=…; name it too")
        else:
            positional.append(parse_literal(argument))
    return positional, keywords


def parse_literal(text: str) -> Any:
    """A number, a truth value, none, several of them in brackets, or the word itself."""
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        return tuple(parse_literal(part) for part in COMMAS.split(text[1:-1]) if part.strip())
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
