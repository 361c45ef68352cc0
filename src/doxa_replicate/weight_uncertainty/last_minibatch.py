"""The loss of each epoch's last minibatch: what the document's authors drew, and by which they kept their nets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Batch, Problem
from doxa.engine.context import StepContext
from doxa.engine.contracts import Beliefs, Gradient, Parameter, Recipe, State
from doxa.predict.belief import Belief
from doxa_replicate.weight_uncertainty.wrapped_learner import WrappedLearner

LAST_NLL = "last_nll"  # mean NLL of an epoch's last minibatch, in the record of the epoch


@dataclass(frozen=True)
class RecordsLastLoss(WrappedLearner):
    """Another learner, whose record of an epoch tells the mean NLL of its last minibatch too."""

    def start(self, problem: Problem, fleet: Sequence[RecordsLastLoss]) -> LastLossGradient:
        return LastLossGradient(self.learner.start(problem, [each.learner for each in fleet]))


class LastLossGradient:
    """Another gradient, which keeps the losses of its last evaluation [K]."""

    def __init__(self, gradient: Gradient) -> None:
        self.gradient = gradient
        values = gradient.parameters[0].values
        self.last_loss = torch.zeros(len(values), dtype=torch.float64, device=values.device)

    @property
    def parameters(self) -> Sequence[Parameter]:
        return self.gradient.parameters

    @property
    def eager(self) -> str | None:
        return self.gradient.eager

    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        losses = self.gradient.evaluate(batch, context)
        self.last_loss.copy_(losses.detach())
        return losses

    def slopes(self, context: StepContext, prior: bool = True) -> Sequence[Recipe]:
        return self.gradient.slopes(context, prior)

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Beliefs:
        return self.gradient.beliefs(at)

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        losses = self.last_loss.tolist()
        return [{**row, LAST_NLL: losses[k]} for k, row in zip(nets, self.gradient.report(nets), strict=True)]

    def state(self) -> State:
        inner = self.gradient.state()
        return State(inner.held, {**inner.moving, LAST_NLL: self.last_loss}, inner.numbers)


def last_loss(row: Mapping[str, float], batch: int, batches: int) -> float:
    """The loss of the last minibatch as it was drawn: its summed NLL, and the last, smallest share of the KL.

    KL / (2^M − 1) − Σᵢ log p(yᵢ | xᵢ, w),  over the minibatch's rows, M minibatches an epoch
    """
    return row["kl"] * math.ldexp(1.0, -batches) / (1 - math.ldexp(1.0, -batches)) + batch * row[LAST_NLL]


@dataclass(eq=False)
class LowestLoss:
    """A watch that keeps each belief as it stood when its last minibatch's loss was the lowest so far.

    So the authors stored their nets: those that did not end there are not what they were in their last epoch.
    """

    batch: int
    batches: int
    until: int | None = None  # epochs; later ones are passed over
    lowest: dict[Any, tuple[float, Belief]] = field(default_factory=dict)

    def __call__(self, beliefs: Sequence[Belief]) -> list[dict[str, float]]:
        for belief in beliefs:
            epoch = len(belief.record.history)
            loss = last_loss(belief.record.history[-1], self.batch, self.batches)
            key = self._key(belief)
            if (self.until is None or epoch <= self.until) and (key not in self.lowest or loss <= self.lowest[key][0]):
                self.lowest[key] = loss, belief
        return [{} for _ in beliefs]

    def kept(self, belief: Belief) -> Belief:
        """What was kept of the net that became a belief."""
        return self.lowest[self._key(belief)][1]

    def _key(self, belief: Belief) -> Any:
        return repr(belief.prior), belief.record.settings["seed"]
