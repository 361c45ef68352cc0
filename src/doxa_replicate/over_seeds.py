"""What several seeds or splits say together: a mean, its standard error, and both in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def mean(values: Sequence[float | None]) -> float:
    """The mean; infinite where a value is, which what is kept can only call None."""
    return float(np.mean([math.inf if v is None else v for v in values]))


def standard_error(values: Sequence[float | None]) -> float | None:
    """The standard error of the mean; None for one value, and where one is infinite."""
    finite = [v for v in values if v is not None and math.isfinite(v)]
    return float(np.std(finite, ddof=1) / math.sqrt(len(finite))) if len(finite) == len(values) > 1 else None


def summary(values: Sequence[float | None]) -> dict[str, float | None]:
    return {"mean": mean(values), "se": standard_error(values)}


def format_number(value: float | None, places: int) -> str:
    """A value with so many decimal places; ∞ where it is not finite."""
    return "∞" if value is None or not math.isfinite(value) else f"{value:.{places}f}"


def format_with_error(mean_and_error: Mapping[str, Any], places: int) -> str:
    """A summary with so many decimal places: the error has as many, so that a column lines up."""
    error_text = "" if mean_and_error["se"] is None else f" ± {mean_and_error['se']:,.{places}f}"
    return f"{mean_and_error['mean']:,.{places}f}{error_text}"
