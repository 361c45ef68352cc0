"""A rate that falls along a cosine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from doxa.contracts import Moment
from doxa.errors import BadInput, require_positive


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from `rate` down to `final` at the last step, after a linear warm-up if one is asked for.

    γ(k) = rate · (k + 1) / (W + 1)                                         for k < W
    γ(k) = final + (rate − final) · (1 + cos(π (k − W) / (K − 1 − W))) / 2  from then on

    k counts the run's K steps from 0; W = warmup · M, rounded, with M the minibatches of an epoch.
    Loshchilov & Hutter (2017), SGDR; warm-up: Goyal et al. (2017), Accurate, large minibatch SGD.
    """

    rate: float
    final: float = 0.0
    warmup: float = 0.0

    def __post_init__(self) -> None:
        require_positive("rate", self.rate)
        if not 0 <= self.final <= self.rate:
            raise BadInput(f"final must lie between 0 and rate ({self.rate}), got {self.final}")
        if not 0 <= self.warmup < math.inf:
            raise BadInput(f"warmup must be a finite number of epochs, 0 or more; got {self.warmup}")

    def __call__(self, moment: Moment) -> float:
        warmup_steps = round(self.warmup * moment.batches)
        if warmup_steps and warmup_steps >= moment.steps:
            raise BadInput(
                f"a warm-up of {self.warmup} epochs takes {warmup_steps} steps and the run has only {moment.steps}; "
                "make the warm-up shorter or the run longer"
            )
        if moment.step < warmup_steps:
            return self.rate * (moment.step + 1) / (warmup_steps + 1)
        progress = (moment.step - warmup_steps) / max(1, moment.steps - 1 - warmup_steps)
        return self.final + (self.rate - self.final) * (1 + math.cos(math.pi * progress)) / 2


cosine = Cosine
EXAMPLES = {"cosine": (Cosine(0.1, final=0.001, warmup=0.5),)}
