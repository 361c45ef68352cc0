"""Whether what a file says of a member's field is of the type that its class gives it."""

from __future__ import annotations

import functools
import math
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

from doxa.contracts import Likelihood, Posterior, Prior
from doxa.predict.rooms import room_of
from doxa.storage.rows import SampleRows
from doxa.storage.sample_store import ROW_SOURCES

LARGEST = 1 << 1023  # whole number that is one of floating point too

# The contracts of rooms: no class says that it is one, so that its room must.
ROOM_OF_CONTRACT = {Posterior: "posteriors", Prior: "priors", Likelihood: "likelihoods"}


@functools.cache
def hints_of(member_class: Any) -> dict[str, Any]:
    """The types of a class's fields; none of a class whose words for them mean nothing any more."""
    try:
        return get_type_hints(member_class)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}


def matches(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; what is not known of a type passes."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(matches(value, option) for option in get_args(hint))
    if get_origin(hint) is tuple:  # which is what every list in a file has become
        return isinstance(value, tuple) and _entries_match(value, get_args(hint))
    if hint is None:
        return value is None
    if hint is Any or not isinstance(hint, type):
        return True
    if hint in ROOM_OF_CONTRACT:
        return room_of(value) == ROOM_OF_CONTRACT[hint]
    if hint is float:
        return (type(value) is float and not math.isnan(value)) or (type(value) is int and abs(value) < LARGEST)
    if hint is list:
        return isinstance(value, list | tuple)
    if hint in (int, bool, str):
        return type(value) is hint
    return isinstance(value, ROW_SOURCES if hint is SampleRows else hint)


def is_list(hint: Any) -> bool:
    """Whether a field is to be a list."""
    return hint is list or get_origin(hint) is list


def _entries_match(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(matches(value, hints[0]) for value in values)
    return len(values) == len(hints) and all(matches(v, h) for v, h in zip(values, hints, strict=True))
