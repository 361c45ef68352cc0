"""Ensembles of anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from doxa.contracts import Batch, Estimate, Learner, Moment, Posterior, Prior, Problem, Training
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

    def start(self, problem: Problem) -> Training:
        trainings = []
        for k in range(self.members):
            seed = (*problem.seed, "member", k)
            fresh = restarted(problem.net, problem.layout, problem.start, seed) if k and self.restart else problem.start
            trainings.append(self.learner.start(replace(problem, seed=seed, start=fresh)))
        return EnsembleTraining(trainings, problem.layout.random)


class EnsembleTraining:
    """Members at work, stepped one after the other under one optimiser."""

    def __init__(self, members: Sequence[Training], random: int) -> None:
        self.members, self.random = members, random
        self.streams = len(members)
        self.parameters: Sequence[Tensor] = [p for m in members for p in m.parameters]
        self.noise = members[0].noise

    def step(self, batches: Sequence[Batch], moment: Moment) -> Tensor:
        losses = [
            member.step([batch], replace(moment, key=(*moment.key, "member", k)))
            for k, (member, batch) in enumerate(zip(self.members, batches, strict=True))
        ]
        return torch.stack(losses).mean()

    def posterior(self) -> Posterior:
        parts = tuple(m.posterior() for m in self.members)
        if all(isinstance(p, Delta) for p in parts):
            return Particles(torch.stack([p.mean for p in parts]), self.random)
        return Mixture(parts)

    def complexity(self) -> Estimate:
        parts = [m.complexity() for m in self.members]
        error = sum(e.error**2 for e in parts) ** 0.5 / len(parts)
        return Estimate(sum(e.value for e in parts) / len(parts), error)

    def trouble(self) -> str | None:
        found = [f"member {k}: {t}" for k, m in enumerate(self.members) if (t := m.trouble())]
        return "; ".join(found) or None

    def state(self) -> dict[str, Tensor]:
        return {f"{k}.{name}": t for k, m in enumerate(self.members) for name, t in m.state().items()}

    @property
    def buffers(self) -> tuple[dict[str, Tensor], ...]:
        return tuple(b for m in self.members for b in m.buffers)
