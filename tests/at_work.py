"""Gradients and leaves as `fit` would start them, for laws that look inside a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from doxa.contracts import Batch, Problem
from doxa.engine.context import StepContext
from doxa.engine.contracts import Gradient
from doxa.engine.recipes import materialised
from doxa.noise import Leaves, Noise
from doxa.noise.interception import Interception
from doxa.noise.leaves import sites_of
from doxa.noise.source import Alone, Source
from doxa.random.keys import Key, seed_of, stream_of
from doxa.random.philox import Stream
from doxa.weights.layout import constants, lay_out
from doxa.weights.probe import Uses, probe


def posed(net: nn.Module, x: Tensor, likelihood: object) -> Problem:
    """One net's problem."""
    layout, start = lay_out(net)
    buffers = constants(net)
    uses, _ = probe(net, layout, start, buffers, x)
    stacked = {k: b[None].clone() for k, b in buffers.items()}
    return Problem(net, layout, uses, likelihood, start[None], stacked, ((0,),), together=False)


def at_step(key: Key = (0,), step: int = 0, weight: float = 0.01, like: Tensor | None = None) -> StepContext:
    """A step's random words, and its KL's weight over the rows."""
    dtype = torch.float32 if like is None else like.dtype
    return StepContext(Stream(torch.tensor([seed_of(key)]), step), torch.tensor([weight], dtype=dtype), ())


def stepped(gradient: Gradient, x: Tensor, y: Tensor, at: StepContext) -> list[Tensor]:
    """The gradients that a step leaves, of each parameter."""
    gradient.evaluate(Batch(x[None], y[None]), at)
    found = materialised(gradient, at)
    return [found[p.name][0].clone() for p in gradient.parameters]


def leaves_of_one(problem: Problem, kind: Noise, scale: Tensor) -> Leaves:
    """Leaves around a problem's start with a scale [R]."""
    return Leaves(problem.layout, problem.uses, kind, problem.start, None, scale[None])


def rows_of(*key: int | str) -> Source:
    """The rows' noise of a key."""
    return Alone(stream_of((*key, "rows")))


@contextmanager
def noisy(leaves: Leaves, uses: Uses, source: Source) -> Iterator[None]:
    """Run the net inside this."""
    if not leaves.ruled:
        yield
        return
    with Interception(sites_of(uses, leaves.first[0], leaves.second[0]), leaves.noise.rule, source):
        yield
