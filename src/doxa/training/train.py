"""From members to their beliefs: a run is driven and closed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from doxa.contracts import Likelihood
from doxa.engine.checkpoint import BELIEF, Checkpointer, reserved
from doxa.engine.driver import drive
from doxa.engine.epochs import EpochMonitor
from doxa.engine.run import Run, training_context
from doxa.errors import Diverged
from doxa.predict.belief import Belief
from doxa.search.engines.contract import GradientWithEngine
from doxa.search.engines.follower import serialize_search
from doxa.terminal.interrupt import gentle_interrupt
from doxa.terminal.progress import Progress
from doxa.training.members import Member, keeps_records
from doxa.training.options import Options
from doxa.training.prepare import prepare_run


def train(
    members: Sequence[Member],
    data: Any,
    likelihood: Likelihood,
    options: Options,
    part: str = "",
) -> list[Belief]:
    """Learn the beliefs of members that can work as one program."""
    run, monitor, checkpointer = prepare_run(members, data, likelihood, options)
    with ExitStack() as stack:
        stack.callback(run.release)
        stack.enter_context(reserved(checkpointer.folder if keeps_records(members) else None))
        checkpointer.reopen(run, options.resume)
        with (
            training_context(run.problem, run.device),
            with_workers(run, checkpointer) as leads,
            gentle_interrupt() as stop,
        ):
            if not run.finished:
                # By all steps, not by those left: a run that is resumed must run on the same kernels.
                run.record(run.calendar.units * run.source.period)
            show_progress = options.progress and leads
            drive(
                run,
                checkpointer,
                Progress(show_progress, options.epochs, run.calendar.units_per_epoch, run.done, len(members), part),
                stop,
            )
        return _finish_run(run, monitor, checkpointer, [member.number for member in members])


def _finish_run(
    run: Run, monitor: EpochMonitor, checkpointer: Checkpointer, numbers: Sequence[int | None]
) -> list[Belief]:
    """The finished beliefs, also as files in the run's folder; `numbers` are the members' places in their fleet."""
    run.finish(range(run.members.count))
    beliefs = monitor.beliefs()
    if checkpointer.folder is not None:
        for belief, number in zip(beliefs, numbers, strict=True):
            if belief is not None:
                belief.save(checkpointer.folder / (BELIEF if number is None else f"belief-{number}.doxa"))
    if monitor.troubles:
        raise Diverged.of_members(monitor.troubles, beliefs)
    return [belief for belief in beliefs if belief is not None]


@contextmanager
def with_workers(run: Run, checkpointer: Checkpointer) -> Iterator[bool]:
    """Let workers evaluate for a gradient that has an engine for them; whether this process keeps the run's records."""
    gradient = run.gradient
    if not isinstance(gradient, GradientWithEngine):
        yield True
        return
    engine = gradient.engine
    if not engine.leads:
        checkpointer.folder = None
    with engine.start_workers(partial(serialize_search, run)) as exchange:
        gradient.exchange = exchange
        yield engine.leads
