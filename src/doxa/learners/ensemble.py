"""Ensembles of anything.

Members of an ensemble are nets of a fleet that end as one belief: nothing here learns, and whatever learns can be a
member. Each net has a seed of its own, a hash of the member's seed and the net's place in it, (seed, "net", j). So nets
meet independent noise and orders of the data; net j of five is net j of ten; and which other nets learn beside it
changes nothing. One seed for all would give every net the same noise: their average would be as noisy as one.

What makes members differ is where they start. Nets from one start stay near one mode of the posterior even under
independent noise, and from fresh starts end in different ones: Fort, Hu & Lakshminarayanan (2019), Deep ensembles: a
loss landscape perspective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from doxa.contracts import Prior, Problem, Schedule
from doxa.engine.contracts import Gradient, Learner
from doxa.errors import BadInput
from doxa.learners.example import Example
from doxa.learners.point import Point
from doxa.weights.layout import fresh_weights


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
        return type(self), self.members, self.learner.kind

    def start(self, problem: Problem, fleet: Sequence[Ensemble]) -> Gradient:
        """The first net of each starts as given, so that an ensemble of one is its learner; the others start afresh."""
        starts = []
        for j, row in enumerate(problem.start):
            fresh = j % self.members > 0 and fleet[j // self.members].restart
            starts.append(fresh_weights(problem.net, problem.layout, row, problem.seeds[j]) if fresh else row)
        return self.learner.start(replace(problem, start=torch.stack(starts)), _member_learners(fleet))

    def optimiser(self, fleet: Sequence[Ensemble]) -> Any:
        return self.learner.optimiser(_member_learners(fleet))

    def collector(self, fleet: Sequence[Ensemble]) -> Any:
        return self.learner.collector(_member_learners(fleet))


def _member_learners(fleet: Sequence[Ensemble]) -> list[Learner]:
    """A learner for every net."""
    return [ensemble.learner for ensemble in fleet for _ in range(ensemble.members)]


ensemble = Ensemble
EXAMPLES = {"ensemble": {"point": Example(lambda prior: Ensemble(Point(prior), 2), "map")}}
