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
from doxa.noise.leaves import noise_sites
from doxa.noise.source import NoiseSource, StreamSource
from doxa.random.keys import Key, seed_of, stream_of
from doxa.random.philox import Stream
from doxa.weights.layout import lay_out, untrained_tensors
from doxa.weights.probe import Uses, probe


def single_net_problem(net: nn.Module, x: Tensor, likelihood: object) -> Problem:
    """One net's problem."""
    layout, start = lay_out(net)
    buffers = untrained_tensors(net)
    uses, _ = probe(net, layout, start, buffers, x)
    stacked = {k: b[None].clone() for k, b in buffers.items()}
    return Problem(net, layout, uses, likelihood, start[None], stacked, ((0,),), vectorized=False)


def step_context(key: Key = (0,), step: int = 0, weight: float = 0.01, like: Tensor | None = None) -> StepContext:
    """A step's random words, and its KL's weight over the rows."""
    dtype = torch.float32 if like is None else like.dtype
    return StepContext(Stream(torch.tensor([seed_of(key)]), step), torch.tensor([weight], dtype=dtype), ())


def step_gradients(gradient: Gradient, x: Tensor, y: Tensor, context: StepContext) -> list[Tensor]:
    """The gradients that a step leaves, of each parameter."""
    gradient.evaluate(Batch(x[None], y[None]), context)
    gradients = materialised(gradient, context)
    return [gradients[p.name][0].clone() for p in gradient.parameters]


def single_net_leaves(problem: Problem, kind: Noise, scale: Tensor) -> Leaves:
    """Leaves around a problem's start with a scale [R]."""
    return Leaves(problem.layout, problem.uses, kind, problem.start, None, scale[None])


def row_noise_source(*key: int | str) -> NoiseSource:
    """The rows' noise of a key."""
    return StreamSource(stream_of((*key, "rows")))


@contextmanager
def intercept_noise(leaves: Leaves, uses: Uses, source: NoiseSource) -> Iterator[None]:
    """Run the net inside this."""
    if not leaves.has_rule:
        yield
        return
    with Interception(noise_sites(uses, leaves.first[0], leaves.second[0]), leaves.noise.rule, source):
        yield
