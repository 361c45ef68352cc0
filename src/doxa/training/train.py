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
from doxa.engine.epochs import EpochMonitor, Validation
from doxa.engine.feed import InMemoryFeed, make_feed
from doxa.engine.members import Members, repeat_per_net
from doxa.engine.run import Calendar, Run, training_context
from doxa.engine.sources import make_source
from doxa.errors import BadInput, Diverged
from doxa.predict.belief import Belief
from doxa.random.keys import seed_of
from doxa.rates import constant
from doxa.search import engines
from doxa.storage.describe import describe
from doxa.terminal.interrupt import gentle_interrupt
from doxa.terminal.progress import Progress
from doxa.training.members import Member, net_keys, require_training_arguments
from doxa.training.options import Options
from doxa.training.parts import build_parts
from doxa.training.problem import build_problem, held_out_rows, to_device
from doxa.weights.batch_norm import updates_batch_norm
from doxa.weights.layout import bind_prior, lay_out
from doxa.weights.saved_layout import decode_layout, require_same_net

CHECKPOINT_KIND = "doxa.training"  # the kind of its checkpoints


def train(
    members: Sequence[Member],
    data: Any,
    likelihood: Likelihood,
    options: Options,
    part: str = "",
) -> list[Belief]:
    """Learn the beliefs of members that can work as one program."""
    run, monitor, checkpointer = prepare_run(members, data, likelihood, options)
    try:
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
    finally:
        run.release()


def prepare_run(
    members: Sequence[Member], data: Any, likelihood: Likelihood, options: Options
) -> tuple[Run, EpochMonitor, Checkpointer]:
    """A run before its first step, who watches over it, and where it is kept."""
    net = members[0].net
    batch_size, optimiser, autocast = options.batch_size, options.optimiser, options.autocast
    for member in members:
        require_training_arguments(member.net, member.learner, likelihood, optimiser, autocast)
    has_validation = members[0].validation is not None
    if any((member.validation is not None) is not has_validation for member in members):
        raise BadInput("some members have validation data and others none; give all of them some, or none")
    if options.patience is not None and not has_validation:
        raise BadInput("patience needs validation data to be patient with: pass validation=(x, y)")
    _, like = lay_out(net, options.random)
    like = to_device(options.device, like[:1])
    feed = make_feed(
        data, like, batch_size, options.size, [member.rows for member in members for _ in range(member.learner.nets)]
    )
    if updates_batch_norm(net) and min(batch_size, feed.size) == 1:
        raise BadInput("BatchNorm has no statistics of a single row: use batch_size of at least 2")
    problem = build_problem(members, feed, likelihood, options.random, like.device, autocast)
    fingerprint = feed.fingerprint()  # takes memory of its own, before there are gradients and moments
    # What several members share is there once.
    validation_by_id = {id(member.validation): member.validation for member in members if has_validation}
    held_out_by_id = {key: held_out_rows(validation, problem, like) for key, validation in validation_by_id.items()}
    held_out = [held_out_by_id[id(member.validation)] for member in members] if has_validation else None
    fingerprint_by_id = {key: InMemoryFeed(*pair, batch_size).fingerprint() for key, pair in held_out_by_id.items()}
    validation_fingerprints = [
        fingerprint_by_id[id(member.validation)] if has_validation else None for member in members
    ]
    parts = build_parts(members, problem, feed, options)
    _warn_fallbacks(parts.gradient.beliefs().noise)
    settings = [
        {
            "learner": describe(member.learner),
            "likelihood": describe(likelihood),
            "lr": describe(rate),
            "optimiser": describe(optimiser_settings),
            "epochs": options.epochs,
            "batch_size": batch_size,
            "patience": options.patience,
            "validation_samples": options.validation_samples if has_validation else None,
            "seed": member.seed,
            "size": feed.size,
            "autocast": str(autocast) if autocast else None,
            "data": fingerprint,
            "validation": validation_fingerprint,
        }
        for member, rate, validation_fingerprint, optimiser_settings in zip(
            members, parts.rates, validation_fingerprints, parts.optimiser_settings, strict=True
        )
    ]
    nets, net_seeds = (
        members[0].learner.nets,
        torch.tensor([seed_of(key) for key in net_keys(members)], device=like.device),
    )
    run = Run(
        problem=replace(problem.without_starts(), buffers=problem.buffers),
        members=Members(len(members), nets),
        gradient=parts.gradient,
        stepper=parts.stepper,
        collector=parts.collector,
        source=make_source(feed, net_seeds),
        net_seeds=net_seeds,
        rates=repeat_per_net(
            [rate or constant(1e-3) for rate in parts.rates], nets
        ),  # where the stepper has none of its own
        kl_weights=repeat_per_net([member.learner.kl_weight for member in members], nets),
        calendar=Calendar(options.epochs * feed.batches, feed.batches, feed.batches),
        data=partial(feed.epoch, 0, net_seeds, 0),
    )
    checkpointer = Checkpointer(
        CHECKPOINT_KIND,
        "run",
        options.checkpoint,
        settings,
        is_due=partial(_is_due, options.checkpoint_steps, options.checkpoint_every, feed.batches),
        changeable=("epochs",),
        check_header=partial(_require_same_weights, run.problem),
    )
    monitor = EpochMonitor(
        run,
        checkpointer,
        seeds=[member.seed for member in members],
        priors=[bind_prior(member.learner.prior, problem.layout, problem.start[0]) for member in members],
        settings=settings,
        validation=None if held_out is None else Validation(held_out, options.validation_samples),
        patience=options.patience,
        watch=options.watch,
        watch_every=options.watch_every,
    )
    run.monitor, run.reporter = monitor, monitor
    return run, monitor, checkpointer


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
    gradient: Any = run.gradient
    engine = getattr(gradient, "engine", None)
    if engine is None:
        yield True
        return
    if not engine.leads:
        checkpointer.folder = None
    with engine.start_workers(partial(engines.serialize_search, run)) as exchange:
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


def _is_due(every_steps: int | None, every_epochs: int, batches: int, done: int) -> bool:
    """Whether a run is saved after so many steps: `every_steps` within an epoch, and after
    `every_epochs` so many of them.
    """
    epoch, rest = divmod(done, batches)
    return (every_steps is not None and done % every_steps == 0) or (rest == 0 and epoch % every_epochs == 0)


def _warn_fallbacks(noise: dict[str, str]) -> None:
    shared = [f"{name}: {description}" for name, description in noise.items() if description.startswith("shared (")]
    if shared:
        warnings.warn(f"these weights get one shared draw, not the noise asked for: {'; '.join(shared)}", stacklevel=4)
