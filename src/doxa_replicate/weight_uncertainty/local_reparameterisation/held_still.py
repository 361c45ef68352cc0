"""A belief held still: its free energy and gradients are taken again and again, and nothing is learned."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Batch
from doxa.engine.context import StepContext
from doxa.engine.contracts import Learner
from doxa.engine.feed import InMemoryFeed
from doxa.engine.recipes import materialised
from doxa.posteriors import MeanField
from doxa.predict.belief import Belief
from doxa.random.keys import generator, seed_of
from doxa.random.philox import Stream
from doxa.training.members import Member, net_keys
from doxa.training.problem import build_problem


class FrozenBelief:
    """`copies` copies of a mean-field belief, each with batches and noise of its own, under a learner's noise."""

    def __init__(self, belief: Belief, learner: Learner, data: tuple[Any, Any], copies: int) -> None:
        assert isinstance(belief.posterior, MeanField)
        mean = belief.posterior.mean
        x, y = map(torch.as_tensor, data)
        self.x, self.y = x.to(mean), y.to(mean if y.is_floating_point() else mean.device)  # labels stay whole numbers
        members = [Member(belief.net, learner, seed) for seed in range(copies)]
        problem = build_problem(
            members, InMemoryFeed(self.x, self.y, len(self.x)), belief.likelihood, None, mean.device, None
        )
        self.gradient = learner.start(problem, [learner] * copies)
        with torch.no_grad():
            for trained, parameter in zip((mean, belief.posterior.rho), self.gradient.parameters, strict=True):
                parameter.values.copy_(trained.expand_as(parameter.values))
        self.net_seeds = torch.tensor([seed_of(key) for key in net_keys(members)], device=mean.device)
        self.kl_weights = mean.new_full((copies,), 1 / len(self.x))
        self.generator = generator((0, "batches"))
        self.copies, self.steps_done = copies, 0

    def losses(self, batch: int) -> Tensor:
        """Each copy's mean NLL over a batch of rows drawn with replacement [copies]."""
        index = torch.randint(len(self.x), (self.copies, batch), generator=self.generator).to(self.x.device)
        self.context = StepContext(Stream(self.net_seeds, self.steps_done), self.kl_weights, ())
        self.steps_done += 1
        return self.gradient.evaluate(Batch(self.x[index], self.y[index]), self.context)

    def gradients(self, batch: int) -> list[Tensor]:
        """Each copy's gradients of the free energy a row, by mean and by rho [copies, ·]."""
        self.losses(batch)
        gradients = materialised(self.gradient, self.context)
        return [gradients[p.name] for p in self.gradient.parameters]
