"""What Doxa says when something is wrong: what it was, what was expected, how to mend it."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any


class DoxaError(Exception):
    """Everything Doxa raises on purpose."""


class BadInput(DoxaError, ValueError):
    """An argument, a data set or a net that cannot be used as given."""


class Diverged(DoxaError, ArithmeticError):
    """Training left the finite numbers; the last good checkpoint is untouched.

    Of a fleet, `beliefs` holds what the others learned, None for those that diverged, and `troubles` says who did. Of a
    search, `found` holds what it had come to before the generation in which it diverged.
    """

    def __init__(
        self, message: str, beliefs: Any = None, troubles: Mapping[int, str] | None = None, found: Any = None
    ) -> None:
        super().__init__(message)
        self.beliefs, self.found = beliefs, found
        self.troubles = dict(troubles or {})

    @classmethod
    def of_members(cls, troubles: Mapping[int, str], beliefs: Sequence[Any]) -> Diverged:
        """Members of a fleet, the others of which were trained to the end."""
        each = "; ".join(f"member {k}: {what}" for k, what in sorted(troubles.items()))
        return cls(
            f"{len(troubles)} of {len(beliefs)} members diverged ({each}). The others were trained to the end: this "
            "error's .beliefs holds them, with None for each that diverged. Lower lr for those, or start them from a "
            "smaller scale",
            beliefs,
            troubles,
        )


class BrokenFile(DoxaError, OSError):
    """A file that cannot be read as what it should be, fetched or written."""


class NewerFile(BrokenFile):
    """A file that a newer Doxa wrote: nothing is wrong with it."""


class Interrupted(DoxaError, KeyboardInterrupt):
    """Training was stopped by a signal, which `signal` numbers; `belief` holds what had been learned by then."""

    def __init__(self, message: str, belief: Any = None, signal: int = 2) -> None:
        super().__init__(message)
        self.belief, self.signal = belief, signal


def require_whole(name: str, value: Any, least: int | None = 1, most: int | None = None) -> int:
    """A whole number of at least `least` and at most `most`, as a plain int."""
    try:
        number = operator.index(value)
    except TypeError:
        raise BadInput(f"{name} must be a whole number; got {value!r}") from None
    if least is not None and number < least:
        raise BadInput(f"{name} must be at least {least}, got {number}")
    if most is not None and number > most:
        raise BadInput(f"{name} must be at most {most:,}, got {shorten(f'{number:,}')}")
    return number


def require_positive(name: str, value: Any) -> None:
    """Refuse a number, or a tensor with any entry, that is not finite and above zero."""
    if (
        not all(0 < float(v) < float("inf") for v in (value.amin(), value.amax()))
        if hasattr(value, "amin")
        else not (isinstance(value, int | float) and 0 < value < float("inf"))
    ):
        raise BadInput(f"{name} must be a positive, finite number; got {value!r}")


def require_positive_number(name: str, value: Any) -> None:
    """Refuse what is not one finite number above zero, a tensor among them."""
    if hasattr(value, "amin"):
        raise BadInput(f"{name} must be one number for all weights; got a tensor of shape {tuple(value.shape)}")
    require_positive(name, value)


def require_size(name: str, value: Any) -> None:
    """Refuse a positive number that a float32 can hardly hold, or nothing that is divided by it."""
    if not hasattr(value, "amin") and not 1e-30 <= value <= 1e30:
        raise BadInput(f"{name} must lie between 1e-30 and 1e30; got {value!r}")


def require_centre(value: Any) -> None:
    """Refuse a centre of weights that is no number, and none of the things that hold one for each weight."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and not abs(value) <= 1e30:
        raise BadInput(f"centre must lie within ±1e30; got {value!r}")
    if not is_number and (value is None or isinstance(value, str | bool | tuple | list)):
        raise BadInput(f"centre must be a number, a tensor, a net or its state dict; got {value!r}")


def require_from_zero(name: str, value: Any) -> None:
    """Refuse what is not a finite number from zero up."""
    if not (isinstance(value, Real) and 0 <= float(value) < float("inf")):
        raise BadInput(f"{name} must be a finite number from 0 up; got {value!r}")


def require_share(name: str, value: Any) -> None:
    """Refuse what is not a number from zero to below one."""
    if isinstance(value, bool) or not (isinstance(value, Real) and 0 <= float(value) < 1):
        raise BadInput(f"{name} must lie between 0 and 1, 1 excluded; got {value!r}")


def did_you_mean(word: str, candidates: Iterable[str], most: int = 12) -> str:
    """The end of a message about an unknown word: the nearest known one, and the list of them."""
    names = [str(k) for k in candidates]
    suggestions = " or ".join(repr(shorten(name)) for name in _similar_names(word, names))
    listed = ", ".join(shorten(n, 40) for n in names[:most]) + (
        f" … ({len(names)} in all)" if len(names) > most else ""
    )
    return f"{f'; did you mean {suggestions}?' if suggestions else ''}; there is: {listed or 'nothing'}"


def _similar_names(word: str, names: Collection[str]) -> list[str]:
    """The names that go on as the word begins, a group's members too; else the nearest one."""

    def plain(name: str) -> str:
        return name.lower().replace("-", "_")

    with_prefix = [
        name
        for name in names
        if word and any(p.startswith(plain(word)) for p in (plain(name), *plain(name).split("/")))
    ]
    if 0 < len(with_prefix) <= 3:
        return with_prefix
    spelled = {plain(name): name for name in names}
    return [spelled[form] for form in difflib.get_close_matches(plain(word), spelled, n=1, cutoff=0.6)]


def shorten(text: str, length: int = 60) -> str:
    """A text of any length or kind in one short line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
