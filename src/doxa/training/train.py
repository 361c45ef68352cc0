"""From members to their beliefs: a run is set up, driven and closed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from doxa.contracts import Likelihood, Problem
from doxa.engine.checkpoint import BELIEF, Checkpointer
from doxa.engine.driver import drive
from doxa.engine.epochs import Epochs, Validation
from doxa.engine.feed import InMemory, feed
from doxa.engine.members import Members, each_net
from doxa.engine.run import Calendar, Run, at_work
from doxa.engine.sources import source_of
from doxa.errors import BadInput, Diverged
from doxa.predict.belief import Belief
from doxa.random.keys import seed_of
from doxa.rates import constant
from doxa.search import engines
from doxa.storage.describe import describe
from doxa.terminal.interrupt import gentle_interrupt
from doxa.terminal.progress import Progress
from doxa.training.members import Member, keys, require_members
from doxa.training.options import Options
from doxa.training.parts import composed
from doxa.training.problem import held_out_rows, on, pose
from doxa.weights.batch_norm import learns_batch_norm
from doxa.weights.layout import lay_out, settle
from doxa.weights.saved_layout import decode_layout, require_same_net

STATE = "doxa.training"  # the kind of its checkpoints


def train(
    members: Sequence[Member],
    data: Any,
    likelihood: Likelihood,
    options: Options,
    part: str = "",
) -> list[Belief]:
    """Learn the beliefs of members that can work as one program."""
    run, monitor, file = prepared(members, data, likelihood, options)
    try:
        file.reopen(run, options.resume)
        with at_work(run.problem, run.device), helped(run, file) as leads, gentle_interrupt() as stop:
            if not run.finished:
                # By all steps, not by those left: a run that is resumed must run on the same kernels.
                run.record(run.calendar.units * run.source.period)
            wanted = options.progress and leads
            drive(run, file, Progress(wanted, options.epochs, run.calendar.epoch, run.done, len(members), part), stop)
        return _closed(run, monitor, file, [one.number for one in members])
    finally:
        run.release()


def prepared(
    members: Sequence[Member], data: Any, likelihood: Likelihood, options: Options
) -> tuple[Run, Epochs, Checkpointer]:
    """A run before its first step, who watches over it, and where it is kept."""
    net = members[0].net
    batch_size, optimiser, autocast = options.batch_size, options.optimiser, options.autocast
    for one in members:
        require_members(one.net, one.learner, likelihood, optimiser, autocast)
    tested = members[0].validation is not None
    if any((one.validation is not None) is not tested for one in members):
        raise BadInput("some members have validation data and others none; give all of them some, or none")
    if options.patience is not None and not tested:
        raise BadInput("patience needs validation data to be patient with: pass validation=(x, y)")
    _, like = lay_out(net, options.random)
    like = on(options.device, like[:1])
    source = feed(data, like, batch_size, options.size, [one.rows for one in members for _ in range(one.learner.nets)])
    if learns_batch_norm(net) and min(batch_size, source.size) == 1:
        raise BadInput("BatchNorm has no statistics of a single row: use batch_size of at least 2")
    problem = pose(members, source, likelihood, options.random, like.device, autocast)
    fingerprint = source.fingerprint()  # takes memory of its own, before there are gradients and moments
    # What several members share is there once.
    checked = {id(one.validation): one.validation for one in members if tested}
    ready = {key: held_out_rows(validation, problem, like) for key, validation in checked.items()}
    held_out = [ready[id(one.validation)] for one in members] if tested else None
    prints = {key: InMemory(*pair, batch_size).fingerprint() for key, pair in ready.items()}
    tests = [prints[id(one.validation)] if tested else None for one in members]
    parts = composed(members, problem, source, options)
    _tell_fallbacks(parts.gradient.beliefs().noise)
    settings = [
        {
            "learner": describe(one.learner),
            "likelihood": describe(likelihood),
            "lr": describe(rate),
            "optimiser": describe(steps),
            "epochs": options.epochs,
            "batch_size": batch_size,
            "patience": options.patience,
            "validation_samples": options.validation_samples if tested else None,
            "seed": one.seed,
            "size": source.size,
            "autocast": str(autocast) if autocast else None,
            "data": fingerprint,
            "validation": seen,
        }
        for one, rate, seen, steps in zip(members, parts.rates, tests, parts.told, strict=True)
    ]
    nets, words = members[0].learner.nets, torch.tensor([seed_of(key) for key in keys(members)], device=like.device)
    run = Run(
        problem=replace(problem.light(), buffers=problem.buffers),
        members=Members(len(members), nets),
        gradient=parts.gradient,
        stepper=parts.stepper,
        collector=parts.collector,
        source=source_of(source, words),
        words=words,
        rates=each_net([rate or constant(1e-3) for rate in parts.rates], nets),  # where the stepper has none of its own
        kl_weights=each_net([one.learner.kl_weight for one in members], nets),
        calendar=Calendar(options.epochs * source.batches, source.batches, source.batches),
        data=partial(source.epoch, 0, words, 0),
    )
    file = Checkpointer(
        STATE,
        "run",
        options.checkpoint,
        settings,
        due=partial(_due, options.checkpoint_steps, options.checkpoint_every, source.batches),
        free=("epochs",),
        fits=partial(_require_same_weights, run.problem),
    )
    monitor = Epochs(
        run,
        file,
        seeds=[one.seed for one in members],
        priors=[settle(one.learner.prior, problem.layout, problem.start[0]) for one in members],
        settings=settings,
        validation=None if held_out is None else Validation(held_out, options.validation_samples),
        patience=options.patience,
        watch=options.watch,
        watch_every=options.watch_every,
    )
    run.monitor, run.front = monitor, monitor
    return run, monitor, file


def _closed(run: Run, monitor: Epochs, file: Checkpointer, numbers: Sequence[int | None]) -> list[Belief]:
    """The finished beliefs, also as files in the run's folder; `numbers` are the members' places in their fleet."""
    run.finish(range(run.members.count))
    found = monitor.beliefs()
    if file.folder is not None:
        for belief, number in zip(found, numbers, strict=True):
            if belief is not None:
                belief.save(file.folder / (BELIEF if number is None else f"belief-{number}.doxa"))
    if monitor.troubles:
        raise Diverged.some(monitor.troubles, found)
    return [belief for belief in found if belief is not None]


@contextmanager
def helped(run: Run, file: Checkpointer) -> Iterator[bool]:
    """Let workers evaluate for a gradient that has an engine for them; whether this process keeps the run's records."""
    gradient: Any = run.gradient
    engine = getattr(gradient, "engine", None)
    if engine is None:
        yield True
        return
    if not engine.leads:
        file.folder = None
    with engine.working(partial(engines.copied, run)) as exchange:
        gradient.exchange = exchange
        yield engine.leads


def _require_same_weights(problem: Problem, path: Path, header: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of another net, or of other weights of it."""
    layout, buffers = decode_layout(header["layout"]), {k: b[0] for k, b in problem.buffers.items()}
    require_same_net(path, layout, buffers, problem.net)
    if layout != problem.layout:
        raise BadInput(
            f"{path} belongs to a run in which other weights were random or frozen; use the same call to go on"
        )


def _due(often: int | None, every: int, batches: int, done: int) -> bool:
    """Whether a run is saved after so many steps: `often` within an epoch, and after `every` so many of them."""
    epoch, rest = divmod(done, batches)
    return (often is not None and done % often == 0) or (rest == 0 and epoch % every == 0)


def _tell_fallbacks(noise: dict[str, str]) -> None:
    shared = [f"{name}: {how}" for name, how in noise.items() if how.startswith("shared (")]
    if shared:
        warnings.warn(f"these weights get one shared draw, not the noise asked for: {'; '.join(shared)}", stacklevel=4)
