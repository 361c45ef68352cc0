"""What the laws of learners are tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from doxa.engine.contracts import Learner


@dataclass(frozen=True)
class Example:
    """What makes a learner of a prior, and the exact answer that its mean must reach in linear regression.

    `exact` is "map", the mean of the true posterior; "least squares", the answer without a prior; or None for a learner
    that goes elsewhere, for a `reason` in words. `tolerance` is in standard deviations of the true posterior, after 300
    steps at a falling rate (`tests/laws/test_learners.py`).
    """

    make: Callable[[Any], Learner]
    exact: Literal["map", "least squares"] | None
    tolerance: float = 0.1
    reason: str = ""
