"""One rate for the whole run."""

from __future__ import annotations

from dataclasses import dataclass

from doxa.contracts import Moment
from doxa.errors import require_positive


@dataclass(frozen=True)
class Constant:
    """The same rate at every step.

    γ(k) = rate

    Mandt, Hoffman & Blei (2017), Stochastic gradient descent as approximate Bayesian inference.
    """

    rate: float

    def __post_init__(self) -> None:
        require_positive("rate", self.rate)

    def __call__(self, moment: Moment) -> float:
        return self.rate


constant = Constant
EXAMPLES = {"constant": (Constant(0.1),)}
