"""Fields of a header, each checked to be of its kind: what is not raises a ValueError that names it."""

from __future__ import annotations

from typing import Any, Never

from doxa.errors import shorten


def refuse(name: str, value: Any, expected: str) -> Never:
    """Say of a field what it is and what it should be."""
    raise ValueError(f"{name} is {shorten(repr(value))}, expected {expected}")


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number, which neither a truth nor a fraction is."""
    if type(value) is not int or value < least or (most is not None and value > most):
        span = f"from {least} up" if most is None else f"{least}" if least == most else f"from {least} to {most}"
        refuse(name, value, f"the whole number {span}" if least == most else f"a whole number {span}")
    return value


def truth(name: str, value: Any) -> bool:
    """True or False."""
    return value if isinstance(value, bool) else refuse(name, value, "true or false")


def text(name: str, value: Any) -> str:
    """A text."""
    return value if isinstance(value, str) else refuse(name, value, "a text")


def items(name: str, value: Any, count: int | None = None) -> list[Any]:
    """A list, of `count` entries if that is given."""
    if not isinstance(value, list) or (count is not None and len(value) != count):
        refuse(name, value, "a list" if count is None else f"a list of {count}")
    return value


def mapping(name: str, value: Any) -> dict[str, Any]:
    """An object of named values."""
    return value if isinstance(value, dict) else refuse(name, value, "an object of named values")


def shape(name: str, value: Any) -> tuple[int, ...]:
    """The lengths of a tensor's axes."""
    return tuple(whole(f"{name}[{i}]", n) for i, n in enumerate(items(name, value)))
