"""What several seeds or splits say together: a mean, its standard error, and both in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def error(values: Sequence[float]) -> float | None:
    """The standard error of the mean; None for one value."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def summary(values: Sequence[float]) -> dict[str, float | None]:
    return {"mean": mean(values), "se": error(values)}


def with_error(of: Mapping[str, Any], places: int) -> str:
    """A summary with so many decimal places: the error has as many, so that a column lines up."""
    spread = "" if of["se"] is None else f" ± {of['se']:.{places}f}"
    return f"{of['mean']:.{places}f}{spread}"
