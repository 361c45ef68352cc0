"""Where nets become beliefs: an ensemble makes one of several, and nobody but the engine knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Estimate, Posterior, Prior, Problem, Record
from doxa.engine.contracts import Beliefs
from doxa.posteriors.delta import Delta
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles
from doxa.predict.belief import Belief


@dataclass(frozen=True)
class Members:
    """M members of `nets` nets each, in this order among all K."""

    count: int
    nets: int

    def of(self, member: int) -> range:
        """The nets of a member."""
        return range(member * self.nets, (member + 1) * self.nets)

    def nets_of(self, members: Sequence[int]) -> list[int]:
        return [j for k in members for j in self.of(k)]

    def means(self, values: Tensor) -> list[float]:
        """The mean of each member's nets' numbers [K]."""
        return values.view(-1, self.nets).mean(1).tolist()

    def posterior(self, beliefs: Beliefs, member: int) -> Posterior:
        """What a member believes: its net's posterior, or all of them, equally likely."""
        parts = tuple(beliefs.posterior(j) for j in self.of(member))
        if len(parts) == 1:
            return parts[0]
        if all(isinstance(p, Delta) for p in parts):
            return Particles(torch.stack([p.mean for p in parts]), len(parts[0].scale))
        return Mixture(parts)

    def buffers(self, beliefs: Beliefs, member: int) -> tuple[dict[str, Tensor], ...]:
        return tuple(own for j in self.of(member) for own in beliefs.buffers(j))

    def complexities(self, beliefs: Beliefs, members: Sequence[int]) -> list[Estimate]:
        """Each member's, the mean over its nets."""
        parts = beliefs.complexities(self.nets_of(members))
        return [_mean(parts[first : first + self.nets]) for first in range(0, len(parts), self.nets)]

    def reports(self, rows: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
        """What is said of nets, as the mean over those of each member."""
        each = [rows[first : first + self.nets] for first in range(0, len(rows), self.nets)]
        return [{name: sum(row[name] for row in own) / self.nets for name in own[0]} for own in each]

    def belief(self, problem: Problem, beliefs: Beliefs, member: int, prior: Prior | None, record: Record) -> Belief:
        """A member's belief as it stands."""
        return Belief(
            net=problem.net,
            likelihood=problem.likelihood,
            posterior=self.posterior(beliefs, member),
            layout=problem.layout,
            buffers=self.buffers(beliefs, member),
            prior=prior,
            noise=beliefs.noise,
            record=record,
        )


def _mean(parts: Sequence[Estimate]) -> Estimate:
    if len(parts) == 1:
        return parts[0]
    error = sum(e.error**2 for e in parts) ** 0.5 / len(parts)
    return Estimate(sum(e.value for e in parts) / len(parts), error)


def each_net(values: Sequence[Any], nets: int) -> list[Any]:
    """A member's own for every one of its nets."""
    return [value for value in values for _ in range(nets)]
