"""Point estimates: maximum likelihood and MAP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor

from doxa.contracts import Batch, Estimate, Moment, Posterior, Prior, Problem, Schedule, Training
from doxa.kl_weights import uniform
from doxa.layout import not_finite, settle
from doxa.learners.evidence import nll
from doxa.noise.leaves import leaves_of
from doxa.posteriors import delta
from doxa.posteriors.divergence import kl
from doxa.randomness import reseed


@dataclass(frozen=True)
class Point:
    """One best vector of weights: maximum likelihood without a prior, MAP with one.

    w* = argmin_w −(1/N) Σᵢ log p(yᵢ | xᵢ, w) − (1/N) log p(w)

    Bishop (2006), Pattern recognition and machine learning, section 5.2.
    """

    prior: Prior | None = None
    kl_weight: Schedule = field(default_factory=uniform)

    def start(self, problem: Problem) -> Training:
        prior = settle(self.prior, problem.layout, problem.start)
        random = problem.layout.random

        def slope(w: Tensor) -> Tensor:
            return prior.grad_log_prob(w)

        return PointTraining(
            problem,
            prior,
            self.kl_weight,
            slope if prior is not None else None,
            believe=lambda mean: delta(mean, random),
        )


class PointTraining:
    """A vector of weights at work: the net runs on views of it, gradients fall into views of one flat gradient."""

    streams = 1

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None,
        kl_weight: Schedule,
        slope: Callable[[Tensor], Tensor] | None,
        believe: Callable[[Tensor], Posterior],
        noise: dict[str, str] | None = None,
    ) -> None:
        self.problem, self.prior, self.kl_weight, self.slope, self.believe = (
            problem,
            prior,
            kl_weight,
            slope,
            believe,
        )
        self.mean = problem.start.clone().requires_grad_()
        self.mean.grad = torch.zeros_like(problem.start)
        self.leaves = leaves_of(problem.layout, self.mean.detach(), self.mean.grad)
        self._buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.parameters: Sequence[Tensor] = [self.mean]
        self.at_work: Callable[[], AbstractContextManager[object]] = nullcontext
        self.noise = noise or {s.name: "point" for s in problem.layout.slots}

    def step(self, batches: Sequence[Batch], moment: Moment) -> Tensor:
        (batch,) = batches
        gradient = self.mean.grad
        assert gradient is not None
        gradient.zero_()
        reseed(moment.key, gradient.device)
        with self.at_work():
            loss = nll(self.problem, self.leaves, self._buffers, batch)
        loss.backward()
        if self.slope is not None:
            random = self.problem.layout.random
            weight = self.kl_weight(moment) / self.problem.size
            gradient[:random].sub_(self.slope(self.mean.detach()[:random]), alpha=weight)
        return loss.detach()

    def posterior(self) -> Posterior:
        return self.believe(self.mean.detach().clone())

    def complexity(self) -> Estimate:
        return kl(self.posterior(), self.prior)

    def trouble(self) -> str | None:
        return not_finite(self.problem.layout, self.mean.detach())

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean, **{f"buffers.{k}": b for k, b in self._buffers.items()}}

    @property
    def buffers(self) -> tuple[dict[str, Tensor], ...]:
        return ({k: b.clone() for k, b in self._buffers.items()},)
