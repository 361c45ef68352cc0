"""What learns: a plain net, and a belief as `doxa.fit` would learn it, both a step at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import doxa
from doxa.contracts import Batch
from doxa.engine.context import StepContext
from doxa.engine.contracts import Learner
from doxa.engine.feed import InMemoryFeed
from doxa.engine.recipes import materialised
from doxa.posteriors.mean_field import inverse_softplus
from doxa.predict.sweep import ROWS as CHUNK
from doxa.random.keys import seed_of
from doxa.random.philox import Stream
from doxa.training.members import Member, net_keys
from doxa.training.problem import build_problem
from doxa_bench.net_kinds import BATCH, ROWS

RATE = 1e-3
SCALE = 0.01  # at the start, in every library
GAUSSIAN = doxa.priors.gaussian(1.0)
MIXTURE = doxa.priors.scale_mixture(0.5, 1.0, math.exp(-7))

NamedTensors = dict[str, Tensor]


class TrainableModel(NamedTuple):
    """A net or a belief that learns: all that is asked of any library."""

    step: Callable[[Tensor, Tensor], None]  # forward, loss, backward and Adam on a batch
    outputs: Callable[[Tensor, int], Tensor]  # of so many draws for rows, [S, B, C], swept in chunks
    mean_gradients: Callable[[Tensor, Tensor], NamedTensors]  # of a batch's loss by the mean weights, by their names


def chunks(x: Tensor) -> tuple[Tensor, ...]:
    """Rows as a prediction sweeps them, in every library alike."""
    return x.split(CHUNK)


def plain_model(net: nn.Module) -> TrainableModel:
    """A plain net with cross-entropy and fused Adam; its draws are as many passes."""
    optimiser = torch.optim.Adam(net.parameters(), RATE, fused=True)

    def step(x: Tensor, y: Tensor) -> None:
        optimiser.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimiser.step()

    @torch.no_grad()
    def outputs(x: Tensor, samples: int) -> Tensor:
        net.eval()
        repeated_outputs = torch.stack([torch.cat([net(part) for part in chunks(x)]) for _ in range(samples)])
        net.train()
        return repeated_outputs

    def mean_gradients(x: Tensor, y: Tensor) -> NamedTensors:
        gradients = torch.autograd.grad(F.cross_entropy(net(x), y), tuple(net.parameters()))
        return dict(zip((name for name, _ in net.named_parameters()), gradients, strict=True))

    return TrainableModel(step, outputs, mean_gradients)


class BeliefTrainer:
    """A belief, or several as one program, trained a step at a time."""

    def __init__(
        self, net: nn.Module, rows: tuple[Tensor, Tensor], learner: Learner, size: float = ROWS, nets: int = 1
    ) -> None:
        x, y = rows
        self.net, self.nets = net, nets
        members = [Member(net, learner, seed) for seed in range(nets)]
        problem = build_problem(
            members, InMemoryFeed(x, y, BATCH), doxa.likelihoods.categorical(), None, x.device, None
        )
        self.layout = problem.layout
        self.gradient = learner.start(problem, [learner] * nets)
        self.stepper = doxa.optimisers.adam().start(self.gradient)
        self.net_seeds = torch.tensor([seed_of(key) for key in net_keys(members)], device=x.device)
        self.kl_weights = torch.full((nets,), 1 / size, device=x.device)
        self.rates = torch.full((nets,), RATE, device=x.device)
        self.step_count = 0

    def context(self) -> StepContext:
        scalars = (self.stepper.numbers(self.step_count + 1),)
        return StepContext(Stream(self.net_seeds, self.step_count), self.kl_weights, (self.rates,), scalars=scalars)

    def batch(self, x: Tensor, y: Tensor) -> Batch:
        """The same rows for every net."""
        return (
            Batch(x[None], y[None])
            if self.nets == 1
            else Batch(torch.stack([x] * self.nets), torch.stack([y] * self.nets))
        )

    def step(self, batch: Batch) -> None:
        context = self.context()
        self.gradient.evaluate(batch, context)
        self.stepper.step(self.gradient, context)
        self.step_count += 1

    def gradients(self, batch: Batch) -> tuple[NamedTensors, NamedTensors]:
        """Of the free energy by mean and by rho, with new noise each time, nothing being learned."""
        context = self.context()
        self.gradient.evaluate(batch, context)
        gradients_by_parameter = materialised(self.gradient, context)
        self.step_count += 1
        rho_gradients = {
            slot.name: gradients_by_parameter["rho"][0, slot.span].view(slot.shape) for slot in self.layout.random_slots
        }
        return self.layout.weights(gradients_by_parameter["mean"][0]), rho_gradients

    def set_scales(self, scales: NamedTensors) -> None:
        """Give every random weight its scale."""
        rho = self.gradient.parameters[1].values
        for slot in self.layout.random_slots:
            rho[:, slot.span] = inverse_softplus(scales[slot.name]).flatten()

    def belief(self) -> doxa.Belief:
        """The first belief as it stands."""
        beliefs = self.gradient.beliefs()
        posterior, buffers = beliefs.posterior(0), beliefs.buffers(0)
        return doxa.Belief(self.net, doxa.likelihoods.categorical(), posterior, self.layout, buffers)

    def trainable_model(self) -> TrainableModel:
        """What is asked of any library."""
        return TrainableModel(
            lambda x, y: self.step(self.batch(x, y)),
            lambda x, samples: self.belief().predict(x, samples, seed=self.step_count).outputs,
            lambda x, y: self.gradients(self.batch(x, y))[0],
        )


def equal_scales(net: nn.Module, scale: float = SCALE) -> NamedTensors:
    """One scale for every weight."""
    return {name: torch.full_like(p, scale) for name, p in net.named_parameters()}
