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

    def net_range(self, member: int) -> range:
        """The nets of a member."""
        return range(member * self.nets, (member + 1) * self.nets)

    def nets_of(self, members: Sequence[int]) -> list[int]:
        return [j for k in members for j in self.net_range(k)]

    def means(self, values: Tensor) -> list[float]:
        """The mean of each member's nets' numbers [K]."""
        return values.view(-1, self.nets).mean(1).tolist()

    def posterior(self, beliefs: Beliefs, member: int) -> Posterior:
        """What a member believes: its net's posterior, or all of them, equally likely."""
        posteriors = tuple(beliefs.posterior(j) for j in self.net_range(member))
        if len(posteriors) == 1:
            return posteriors[0]
        if all(isinstance(p, Delta) for p in posteriors):
            return Particles(torch.stack([p.mean for p in posteriors]), len(posteriors[0].scale))
        return Mixture(posteriors)

    def buffers(self, beliefs: Beliefs, member: int) -> tuple[dict[str, Tensor], ...]:
        return tuple(net_buffers for j in self.net_range(member) for net_buffers in beliefs.buffers(j))

    def complexities(self, beliefs: Beliefs, members: Sequence[int]) -> list[Estimate]:
        """Each member's, the mean over its nets."""
        estimates = beliefs.complexities(self.nets_of(members))
        return [_mean(estimates[first : first + self.nets]) for first in range(0, len(estimates), self.nets)]

    def reports(self, rows: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
        """What is said of nets, as the mean over those of each member."""
        rows_by_member = [rows[first : first + self.nets] for first in range(0, len(rows), self.nets)]
        return [
            {name: sum(row[name] for row in member_rows) / self.nets for name in member_rows[0]}
            for member_rows in rows_by_member
        ]

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


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    if len(estimates) == 1:
        return estimates[0]
    error = sum(e.error**2 for e in estimates) ** 0.5 / len(estimates)
    return Estimate(sum(e.value for e in estimates) / len(estimates), error)


def repeat_per_net(values: Sequence[Any], nets: int) -> list[Any]:
    """A member's own for every one of its nets."""
    return [value for value in values for _ in range(nets)]
