"""Ensembles of anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Estimate, Learner, Posterior, Prior, Problem, Schedule, Training
from doxa.errors import BadInput
from doxa.layout import restarted
from doxa.posteriors.delta import Delta
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles


@dataclass(frozen=True)
class Ensemble:
    """Several learners of one kind side by side, each with its own start, noise and order of the data.

    p(y | x) = (1/K) Σₖ pₖ(y | x)

    The first member starts from the net as given, the others from fresh initialisations unless `restart` is False.
    Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using deep ensembles.
    """

    learner: Learner
    members: int = 5
    restart: bool = True

    def __post_init__(self) -> None:
        if self.members < 1:
            raise BadInput(f"an ensemble needs at least one member, got {self.members}")
        if isinstance(self.learner, Ensemble):
            raise BadInput("an ensemble of ensembles is one larger ensemble: raise `members` instead")

    @property
    def prior(self) -> Prior | None:
        return self.learner.prior

    @property
    def kl_weight(self) -> Schedule:
        return self.learner.kl_weight

    @property
    def nets(self) -> int:
        return self.members

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program."""
        return Ensemble, self.members, self.learner.kind

    def start(self, problem: Problem, fleet: Sequence[Ensemble]) -> Training:
        each = [own.learner for own in fleet for _ in range(own.members)]
        starts = []
        for j, row in enumerate(problem.start):
            fresh = j % self.members > 0 and fleet[j // self.members].restart
            starts.append(restarted(problem.net, problem.layout, row, problem.seeds[j]) if fresh else row)
        inner = self.learner.start(replace(problem, start=torch.stack(starts)), each)
        return EnsembleTraining(inner, self.members, problem.layout.random)


class EnsembleTraining:
    """Ensembles at work: a fleet of their members' nets."""

    def __init__(self, inner: Training, size: int, random: int) -> None:
        self.inner, self.size, self.random = inner, size, random
        self.nets, self.members = inner.nets, inner.nets // size
        self.parameters, self.noise, self.passes = inner.parameters, inner.noise, inner.passes
        self.step, self.fill_gradients, self.descend = inner.step, inner.fill_gradients, inner.descend
        self.mean, self.draw = inner.mean, inner.draw
        self.state = inner.state

    def _nets(self, member: int) -> range:
        return range(member * self.size, (member + 1) * self.size)

    def posterior(self, member: int) -> Posterior:
        parts = tuple(self.inner.posterior(j) for j in self._nets(member))
        if all(isinstance(p, Delta) for p in parts):
            return Particles(torch.stack([p.mean for p in parts]), self.random)
        return Mixture(parts)

    def complexity(self, member: int) -> Estimate:
        return self.complexities([member])[0]

    def complexities(self, members: Sequence[int]) -> list[Estimate]:
        parts = self.inner.complexities([j for k in members for j in self._nets(k)])
        return [_mean(parts[first : first + self.size]) for first in range(0, len(parts), self.size)]

    def trouble(self, member: int) -> str | None:
        found = [f"member {j % self.size}: {t}" for j in self._nets(member) if (t := self.inner.trouble(j))]
        return "; ".join(found) or None

    def told(self, member: int) -> dict[str, float]:
        rows = [self.inner.told(j) for j in self._nets(member)]
        return {name: sum(row[name] for row in rows) / self.size for name in rows[0]}

    def buffers(self, member: int) -> tuple[dict[str, Tensor], ...]:
        return tuple(b for j in self._nets(member) for b in self.inner.buffers(j))


def _mean(parts: Sequence[Estimate]) -> Estimate:
    error = sum(e.error**2 for e in parts) ** 0.5 / len(parts)
    return Estimate(sum(e.value for e in parts) / len(parts), error)
