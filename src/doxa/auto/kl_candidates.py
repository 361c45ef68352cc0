"""KL weights to choose among: numbers, names of `doxa.kl_weights`, or schedules."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from numbers import Real

from doxa.contracts import Schedule
from doxa.errors import BadInput, did_you_mean, require_positive
from doxa.kl_weights import TABLE
from doxa.kl_weights.tempered import Tempered

KLWeight = float | str | Schedule
KL_WEIGHTS: tuple[KLWeight, ...] = (1.0, 0.1, 0.01, "geometric")


def require_candidates(kl_weights: Sequence[KLWeight]) -> tuple[KLWeight, ...]:
    """The KL weights, each of which makes a schedule."""
    if isinstance(kl_weights, str) or not hasattr(kl_weights, "__len__") or len(kl_weights) == 0:
        raise BadInput(f"kl_weights must hold at least one weight to try, as in (1.0, 0.1); got {kl_weights!r}")
    candidates = tuple(map(_plain, kl_weights))
    for weight in candidates:
        build_schedule(weight)
    return candidates


def _plain(weight: KLWeight) -> KLWeight:
    """A number of any library as Python has it, and a word of any."""
    if isinstance(weight, str):
        return str(weight)
    return float(weight) if isinstance(weight, Real) and not isinstance(weight, bool) else weight


def build_schedule(weight: KLWeight) -> Schedule:
    """A number tempers even shares, a name is a schedule with its defaults."""
    if isinstance(weight, str):
        if weight not in TABLE:
            raise BadInput(f"there is no KL weight {weight!r}{did_you_mean(weight, TABLE)}; give its name or a number")
        try:
            return TABLE[weight]()
        except TypeError:
            raise BadInput(f"the KL weight {weight!r} cannot do without arguments: give a schedule") from None
    if callable(weight):
        return weight
    if not isinstance(weight, Real) or isinstance(weight, bool):
        raise BadInput(f"each of kl_weights must be a positive, finite number, a name or a schedule; got {weight!r}")
    require_positive("each of kl_weights", weight)
    return Tempered(weight)


def describe_weight(weight: KLWeight) -> str:
    """What a KL weight is called in a line."""
    return weight if isinstance(weight, str) else repr(weight) if callable(weight) else f"{weight:g}"


def members_folder(weight: KLWeight) -> str:
    """Where members that learn with a KL weight are kept: a name that any file system takes."""
    name = describe_weight(weight)
    is_plain = name.replace(".", "").replace("-", "").replace("+", "").replace("_", "").isalnum()
    return f"members-{name if is_plain else hashlib.sha256(name.encode()).hexdigest()[:12]}"
