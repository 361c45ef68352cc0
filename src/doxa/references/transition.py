"""One step of the Markov chains: a trajectory, and whether to go where it ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from doxa.random import streams
from doxa.random.philox import Stream, fill_normals, fill_uniform
from doxa.references.leapfrog import Target, kinetic, leapfrog

DIVERGENT = 1000.0  # nats of energy gained on the way: no trajectory that follows the dynamics does that

# (energy that the trajectory lost [K], uniform numbers [K]) -> who goes to its end [K]
Rule = Callable[[Tensor, Tensor], Tensor]


class Outcome(NamedTuple):
    """What came of a trajectory, for each chain [K]."""

    energy: Tensor  # where the chain now is
    acceptance: Tensor  # the probability with which it was to go on
    divergent: Tensor  # whether the dynamics were lost on the way


def metropolis(loss: Tensor, uniform: Tensor) -> Tensor:
    """Accept with probability min(1, exp(H before − H after)). Metropolis et al. (1953)."""
    return uniform.log() < loss


def draw_momentum(stream: Stream, inverse_mass: Tensor, like: Tensor) -> Tensor:
    """Momenta [K, P] from N(0, M), of each chain from its own stream."""
    momentum = torch.empty_like(like)
    fill_normals(momentum, stream)
    return momentum.div_(inverse_mass.sqrt())


@torch.no_grad()
def transition(
    target: Target,
    energy: Tensor,
    stream: Stream,
    step_size: Tensor,
    inverse_mass: Tensor,
    steps: int,
    rule: Rule = metropolis,
) -> Outcome:
    """Give each chain a fresh momentum, follow it, and accept where that leads or stay; positions change in place.

    H(q, p) = U(q) + ½ pᵀ M⁻¹ p,  accepted with probability min(1, exp(H(q, p) − H(q′, p′)))

    `energy` [K] is U at the positions, `step_size` [K], `inverse_mass` [P]. A trajectory whose energy is lost, by more
    than 1,000 nats or for good, is divergent and never accepted. Duane et al. (1987), Hybrid Monte Carlo; Neal (2011).
    """
    position, slope = target.position.clone(), target.slope.clone()
    momentum = draw_momentum(stream.with_number(streams.CHAIN_MOMENTUM), inverse_mass, position)
    before = energy + kinetic(momentum, inverse_mass)
    leapfrog(target, momentum, step_size[:, None].to(position), inverse_mass, steps)
    end = target.energy()
    loss = (before - end - kinetic(momentum, inverse_mass)).nan_to_num(nan=-math.inf)
    uniform = torch.empty_like(loss)[:, None]
    fill_uniform(uniform, stream.with_number(streams.CHAIN_ACCEPT))
    divergent = loss < -DIVERGENT
    accepted = rule(loss, uniform[:, 0]) & ~divergent
    target.position.copy_(torch.where(accepted[:, None], target.position, position))
    target.slope.copy_(torch.where(accepted[:, None], target.slope, slope))
    return Outcome(torch.where(accepted, end, energy), loss.clamp_max(0).exp(), divergent)
