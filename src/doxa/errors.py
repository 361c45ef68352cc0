"""What Doxa says when something is wrong: what it was, what was expected, how to mend it."""

from __future__ import annotations

import operator
from typing import Any


class DoxaError(Exception):
    """Everything Doxa raises on purpose."""


class BadInput(DoxaError, ValueError):
    """An argument, a data set or a net that cannot be used as given."""


class Diverged(DoxaError, ArithmeticError):
    """Training left the finite numbers; the last good checkpoint is untouched."""


class BrokenFile(DoxaError, OSError):
    """A file that cannot be read as a belief or a checkpoint, or could not be written."""


class Interrupted(DoxaError, KeyboardInterrupt):
    """Training was stopped by hand; `belief` holds what had been learned by then."""

    def __init__(self, message: str, belief: Any = None) -> None:
        super().__init__(message)
        self.belief = belief


def whole(name: str, value: Any, least: int | None = 1) -> int:
    """A whole number of at least `least`, as a plain int."""
    try:
        number = operator.index(value)
    except TypeError:
        raise BadInput(f"{name} must be a whole number; got {value!r}") from None
    if least is not None and number < least:
        raise BadInput(f"{name} must be at least {least}, got {number}")
    return number


def require_positive(name: str, value: Any) -> None:
    """Refuse a number, or a tensor with any entry, that is not finite and above zero."""
    if (
        not all(0 < float(v) < float("inf") for v in (value.amin(), value.amax()))
        if hasattr(value, "amin")
        else not (isinstance(value, int | float) and 0 < value < float("inf"))
    ):
        raise BadInput(f"{name} must be a positive, finite number; got {value!r}")
