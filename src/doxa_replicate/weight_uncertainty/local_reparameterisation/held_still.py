"""A belief held still: its free energy and gradients are taken again and again, and nothing is learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa.contracts import Batch
from doxa.data.sets.curve import Curve
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
from doxa_replicate.contract import ReplicationOptions

NOISES = ("shared", "local")
BATCHES = (8, 16, 32, 64, 128, 256, 512, 1024)
GRADIENT_BATCH = 128


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


def estimate_count(options: ReplicationOptions) -> int:
    """Estimates behind every variance."""
    return int(options.by_size(128, 1024))


def held_still_variances(
    options: ReplicationOptions, belief: Belief, learners_by_noise: Mapping[str, Learner], data: Curve
) -> dict[str, Any]:
    """The variances of a belief's free energy, by batch, and of its gradients, by noise."""
    copies, rows = int(options.by_size(16, 64)), len(data.x_train)
    frozen = {
        noise: FrozenBelief(belief, learner, (data.x_train, data.y_train), copies)
        for noise, learner in learners_by_noise.items()
    }
    rounds = estimate_count(options) // copies
    variance = {
        noise: [
            float(_pooled_variance([rows * belief_copies.losses(batch) for _ in range(rounds)])) for batch in BATCHES
        ]
        for noise, belief_copies in frozen.items()
    }
    gradients = {
        noise: [belief_copies.gradients(GRADIENT_BATCH) for _ in range(int(options.by_size(2, 8)))]
        for noise, belief_copies in frozen.items()
    }
    gradient_variance = {
        parameter: {
            noise: float(_pooled_variance([gradient[k] for gradient in gradient_rounds]).sum())
            for noise, gradient_rounds in gradients.items()
        }
        for k, parameter in enumerate(("mean", "rho"))
    }
    return {
        "variance": variance,
        "slopes": {noise: float(np.polyfit(np.log(BATCHES), np.log(v), 1)[0]) for noise, v in variance.items()},
        "gradients": {
            parameter: variances | {"ratio": variances["local"] / variances["shared"]}
            for parameter, variances in gradient_variance.items()
        },
    }


def _pooled_variance(parts: Sequence[Tensor]) -> Tensor:
    """The variance over everything in the first axes."""
    return torch.cat(list(parts)).double().var(0)
