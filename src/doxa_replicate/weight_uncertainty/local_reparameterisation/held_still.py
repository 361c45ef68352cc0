"""A belief held still: its free energy and gradients are taken again and again, and nothing is learned."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Batch
from doxa.engine.context import StepContext
from doxa.engine.contracts import Learner
from doxa.engine.feed import InMemory
from doxa.engine.recipes import materialised
from doxa.posteriors import MeanField
from doxa.predict.belief import Belief
from doxa.random.keys import generator, seed_of
from doxa.random.philox import Stream
from doxa.training.members import Member, keys
from doxa.training.problem import pose


class HeldStill:
    """`many` copies of a mean-field belief, each with batches and noise of its own, under a learner's noise."""

    def __init__(self, belief: Belief, learner: Learner, data: tuple[Any, Any], many: int) -> None:
        assert isinstance(belief.posterior, MeanField)
        like = belief.posterior.mean
        self.x, self.y = (torch.as_tensor(part).to(like) for part in data)
        members = [Member(belief.net, learner, seed) for seed in range(many)]
        problem = pose(members, InMemory(self.x, self.y, len(self.x)), belief.likelihood, None, like.device, None)
        self.gradient = learner.start(problem, [learner] * many)
        with torch.no_grad():
            for given, own in zip((like, belief.posterior.rho), self.gradient.parameters, strict=True):
                own.values.copy_(given.expand_as(own.values))
        self.words = torch.tensor([seed_of(key) for key in keys(members)], device=like.device)
        self.weights = like.new_full((many,), 1 / len(self.x))
        self.generator = generator((0, "batches"))
        self.many, self.done = many, 0

    def losses(self, batch: int) -> Tensor:
        """Each copy's mean NLL over a batch of rows drawn with replacement [many]."""
        index = torch.randint(len(self.x), (self.many, batch), generator=self.generator).to(self.x.device)
        self.context = StepContext(Stream(self.words, self.done), self.weights, ())
        self.done += 1
        return self.gradient.evaluate(Batch(self.x[index], self.y[index]), self.context)

    def gradients(self, batch: int) -> list[Tensor]:
        """Each copy's gradients of the free energy a row, by mean and by rho [many, ·]."""
        self.losses(batch)
        found = materialised(self.gradient, self.context)
        return [found[p.name] for p in self.gradient.parameters]
