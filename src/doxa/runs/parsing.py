"""Members of rooms by words, as a command line or a settings file gives them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from doxa import kl_weights, learners, noise, priors
from doxa.errors import BadInput, DoxaError, did_you_mean
from doxa.registry import load_plugins

WHOLE = range(-(2**63), 2**63)  # that torch takes; a larger number is as good as a float
COMMAS = re.compile(r",(?![^(]*\))")  # outside of brackets
# Parameters that take a member of a room: the room, and what its members are called.
ROOMS: dict[str, tuple[Any, str]] = {
    "prior": (priors, "prior"),
    "noise": (noise, "noise"),
    "kl_weight": (kl_weights, "KL weight"),
    "learner": (learners, "learner"),
}


def build_member(text: str, choices: Mapping[str, Any], kind_name: str) -> Any:
    """The member of a room that words name, with its arguments after a colon or in brackets.

    `gaussian`, `gaussian:0.5`, `scale_mixture:share=0.25,wide=1`, `mean_field:rho=(-5,-4)`,
    `annealed:5,of=tempered(0.1)`
    """
    if not isinstance(text, str):
        raise BadInput(f"the {kind_name} is named by a word; got {text!r}{did_you_mean('', choices)}")
    name, arguments_text = split_call(text)
    choice = find_member(name, choices, kind_name)
    positional, keywords = parse_arguments(arguments_text)
    if not callable(choice):
        if positional or keywords:
            raise BadInput(f"the {kind_name} {name} takes no arguments; got {arguments_text!r}")
        return choice
    parameters = read_signature(choice, text, kind_name).parameters

    def resolve(parameter_name: str, value: Any) -> Any:
        parameter = parameters.get(parameter_name)
        return value if parameter is None else resolve_nested(value, parameter, choices, kind_name)

    positional = [resolve(*pair) for pair in zip(parameters, positional, strict=False)] + positional[len(parameters) :]
    keywords = {key: resolve(key, value) for key, value in keywords.items()}
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
    signature = read_signature(maker, text, kind_name)
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


def read_signature(maker: Callable[..., Any], text: str, kind_name: str) -> inspect.Signature:
    """What a member takes; one that does not tell, as some of Python's own classes do not, is refused in words."""
    try:
        return inspect.signature(maker)
    except (TypeError, ValueError):
        raise BadInput(
            f"the {kind_name} {split_call(text)[0]} is {maker!r}, which does not tell its parameters: "
            "register a function that names them"
        ) from None


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


def resolve_nested(value: Any, parameter: inspect.Parameter, choices: Mapping[str, Any], kind_name: str) -> Any:
    """An argument as the member that it names: of the room its parameter belongs to, else of the same room.

    A word is left to a parameter that takes words.
    """
    if not isinstance(value, str) or parameter.annotation in (str, "str") or isinstance(parameter.default, str):
        return value
    if parameter.name in ROOMS:
        room, nested_kind_name = ROOMS[parameter.name]
        return build_member(value, room.TABLE, nested_kind_name)
    return build_member(value, choices, kind_name) if split_call(value)[0] in choices else value


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
            value = kind(text)
        except ValueError:
            continue
        if isinstance(value, float) or value in WHOLE:
            return value
    return text
