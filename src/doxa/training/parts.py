"""What members' learners come to: a gradient for all of their nets, a stepper and a collector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from doxa.collectors.best import BestCollector
from doxa.contracts import Problem, Schedule
from doxa.engine.contracts import Collector, Gradient, Journey, Stepper
from doxa.engine.feed import Feed
from doxa.errors import BadInput
from doxa.optimisers.adam import Adam
from doxa.optimisers.torchs import Torchs
from doxa.rates import constant
from doxa.training.members import Member
from doxa.training.options import Options


@dataclass(frozen=True)
class Parts:
    """What members' learners come to: a gradient for all of their nets, a stepper and a collector."""

    gradient: Gradient
    stepper: Stepper
    collector: Collector
    rates: Sequence[Schedule | None]  # one a member; None where the stepper has its own
    told: Sequence[Any]  # the stepper's settings, as each member's record tells them


def composed(members: Sequence[Member], problem: Problem, source: Feed, options: Options) -> Parts:
    """The parts of a training, each of which may refuse the others."""
    learners = [one.learner for one in members]
    own = learners[0].optimiser(learners)
    if own is not None and options.optimiser is not None:
        raise BadInput(
            f"the learner {type(learners[0]).__name__} takes steps of its own, {type(own).__name__}'s: "
            "leave optimiser= out"
        )
    asked = own if own is not None else options.optimiser or Adam()
    rates = _rates(members, asked)
    gradient = learners[0].start(problem, learners)
    settings = asked if hasattr(asked, "start") else Torchs(asked, rates is None)
    epoch = source.batches
    folder = None if options.checkpoint is None else Path(options.checkpoint)
    journey = Journey(problem.light(), options.epochs * epoch, epoch, folder)
    keeps = learners[0].collector(learners)
    if options.patience is not None and not getattr(keeps, "has_best", True):
        raise BadInput(
            f"patience goes back to the best epoch, and {type(learners[0]).__name__} believes in all that it kept: "
            "leave patience out"
        )
    stepper, collector = settings.start(gradient), keeps.start(gradient, journey)
    if options.patience is not None:
        collector = BestCollector(gradient, collector)
    told = [asked if own is None else one.learner.optimiser([one.learner]) for one in members]
    return Parts(gradient, stepper, collector, rates or [None] * len(members), told)


def _rates(members: Sequence[Member], optimiser: Any) -> list[Schedule] | None:
    """A schedule for each member; None where the optimiser has rates of its own."""
    given = [one.lr for one in members]
    if any(lr is not None for lr in given) and "lr" in getattr(optimiser, "keywords", {}):
        raise BadInput("the learning rate is given twice, to the optimiser and as lr=; leave one out")
    if not hasattr(optimiser, "start") and all(lr is None for lr in given):
        return None
    filled = [1e-3 if lr is None else lr for lr in given]
    return [lr if callable(lr) else constant(float(lr) if isinstance(lr, Real) else lr) for lr in filled]
