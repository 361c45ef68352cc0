"""What members' learners come to: a gradient for all of their nets, a stepper and a collector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from doxa.collectors.best import BestCollector
from doxa.contracts import Problem, Schedule
from doxa.engine.contracts import Collector, CollectorSetup, DeclaresBest, Gradient, Stepper
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
    optimiser_settings: Sequence[Any]  # the stepper's settings, as each member's record tells them


def build_parts(members: Sequence[Member], problem: Problem, feed: Feed, options: Options) -> Parts:
    """The parts of a training, each of which may refuse the others."""
    learners = [member.learner for member in members]
    learner_optimiser = learners[0].optimiser(learners)
    if learner_optimiser is not None and options.optimiser is not None:
        raise BadInput(
            f"the learner {type(learners[0]).__name__} takes steps of its own, {type(learner_optimiser).__name__}'s: "
            "leave optimiser= out"
        )
    optimiser = learner_optimiser if learner_optimiser is not None else options.optimiser or Adam()
    rates = _rates(members, optimiser)
    gradient = learners[0].start(problem, learners)
    stepper_settings = optimiser if hasattr(optimiser, "start") else Torchs(optimiser, rates is None)
    epoch_steps = feed.batches
    folder = None if options.checkpoint is None else Path(options.checkpoint)
    setup = CollectorSetup(problem.without_starts(), options.epochs * epoch_steps, epoch_steps, folder)
    collector_settings = learners[0].collector(learners)
    has_best = collector_settings.has_best if isinstance(collector_settings, DeclaresBest) else True
    if options.patience is not None and not has_best:
        raise BadInput(
            f"patience goes back to the best epoch, and {type(learners[0]).__name__} believes in all that it kept: "
            "leave patience out"
        )
    stepper, collector = stepper_settings.start(gradient), collector_settings.start(gradient, setup)
    if options.patience is not None:
        collector = BestCollector(gradient, collector)
    optimiser_settings = [
        optimiser if learner_optimiser is None else member.learner.optimiser([member.learner]) for member in members
    ]
    return Parts(gradient, stepper, collector, rates or [None] * len(members), optimiser_settings)


def _rates(members: Sequence[Member], optimiser: Any) -> list[Schedule] | None:
    """A schedule for each member; None where the optimiser has rates of its own."""
    lrs = [member.lr for member in members]
    if any(lr is not None for lr in lrs) and "lr" in getattr(optimiser, "keywords", {}):
        raise BadInput("the learning rate is given twice, to the optimiser and as lr=; leave one out")
    if not hasattr(optimiser, "start") and all(lr is None for lr in lrs):
        return None
    filled = [1e-3 if lr is None else lr for lr in lrs]
    return [lr if callable(lr) else constant(float(lr) if isinstance(lr, Real) else lr) for lr in filled]
