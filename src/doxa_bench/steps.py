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
from doxa.engine.feed import InMemory
from doxa.engine.recipes import materialised
from doxa.posteriors.mean_field import inverse_softplus
from doxa.predict.sweep import ROWS as CHUNK
from doxa.random.keys import seed_of
from doxa.random.philox import Stream
from doxa.training.members import Member, keys
from doxa.training.problem import pose
from doxa_bench.kinds import BATCH, ROWS

RATE = 1e-3
SCALE = 0.01  # at the start, in every library
GAUSSIAN = doxa.priors.gaussian(1.0)
MIXTURE = doxa.priors.scale_mixture(0.5, 1.0, math.exp(-7))

Named = dict[str, Tensor]


class Pupil(NamedTuple):
    """A net or a belief that learns: all that is asked of any library."""

    step: Callable[[Tensor, Tensor], None]  # forward, loss, backward and Adam on a batch
    outputs: Callable[[Tensor, int], Tensor]  # of so many draws for rows, [S, B, C], swept in chunks
    slopes: Callable[[Tensor, Tensor], Named]  # of the loss of a batch by the mean weights, by the net's names


def chunks(x: Tensor) -> tuple[Tensor, ...]:
    """Rows as a prediction sweeps them, in every library alike."""
    return x.split(CHUNK)


def plain(net: nn.Module) -> Pupil:
    """A plain net with cross-entropy and fused Adam; its draws are as many passes."""
    optimiser = torch.optim.Adam(net.parameters(), RATE, fused=True)

    def step(x: Tensor, y: Tensor) -> None:
        optimiser.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimiser.step()

    @torch.no_grad()
    def outputs(x: Tensor, samples: int) -> Tensor:
        net.eval()
        found = torch.stack([torch.cat([net(part) for part in chunks(x)]) for _ in range(samples)])
        net.train()
        return found

    def slopes(x: Tensor, y: Tensor) -> Named:
        found = torch.autograd.grad(F.cross_entropy(net(x), y), tuple(net.parameters()))
        return dict(zip((name for name, _ in net.named_parameters()), found, strict=True))

    return Pupil(step, outputs, slopes)


class Believed:
    """A belief, or several as one program, trained a step at a time."""

    def __init__(
        self, net: nn.Module, rows: tuple[Tensor, Tensor], learner: Learner, size: float = ROWS, nets: int = 1
    ) -> None:
        x, y = rows
        self.net, self.nets = net, nets
        members = [Member(net, learner, seed) for seed in range(nets)]
        problem = pose(members, InMemory(x, y, BATCH), doxa.likelihoods.categorical(), None, x.device, None)
        self.layout = problem.layout
        self.gradient = learner.start(problem, [learner] * nets)
        self.stepper = doxa.optimisers.adam().start(self.gradient)
        self.words = torch.tensor([seed_of(key) for key in keys(members)], device=x.device)
        self.weights = torch.full((nets,), 1 / size, device=x.device)
        self.rates = torch.full((nets,), RATE, device=x.device)
        self.done = 0

    def context(self) -> StepContext:
        scalars = (self.stepper.numbers(self.done + 1),)
        return StepContext(Stream(self.words, self.done), self.weights, (self.rates,), scalars=scalars)

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
        self.done += 1

    def gradients(self, batch: Batch) -> tuple[Named, Named]:
        """Of the free energy by mean and by rho, with new noise each time, nothing being learned."""
        context = self.context()
        self.gradient.evaluate(batch, context)
        by = materialised(self.gradient, context)
        self.done += 1
        of_rho = {slot.name: by["rho"][0, slot.span].view(slot.shape) for slot in self.layout.random_slots}
        return self.layout.weights(by["mean"][0]), of_rho

    def spread(self, scales: Named) -> None:
        """Give every random weight its scale."""
        rho = self.gradient.parameters[1].values
        for slot in self.layout.random_slots:
            rho[:, slot.span] = inverse_softplus(scales[slot.name]).flatten()

    def belief(self) -> doxa.Belief:
        """The first belief as it stands."""
        beliefs = self.gradient.beliefs()
        posterior, buffers = beliefs.posterior(0), beliefs.buffers(0)
        return doxa.Belief(self.net, doxa.likelihoods.categorical(), posterior, self.layout, buffers)

    def pupil(self) -> Pupil:
        """What is asked of any library."""
        return Pupil(
            lambda x, y: self.step(self.batch(x, y)),
            lambda x, samples: self.belief().predict(x, samples, seed=self.done).outputs,
            lambda x, y: self.gradients(self.batch(x, y))[0],
        )


def even(net: nn.Module, scale: float = SCALE) -> Named:
    """One scale for every weight."""
    return {name: torch.full_like(p, scale) for name, p in net.named_parameters()}
