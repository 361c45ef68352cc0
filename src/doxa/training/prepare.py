"""From members to a run before its first step: what is asked of them is checked, and what they come to is built."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from doxa.contracts import Likelihood, Problem
from doxa.engine.checkpoint import Checkpointer
from doxa.engine.epochs import EpochMonitor
from doxa.engine.feed import Feed, make_feed
from doxa.engine.members import Members, repeat_per_net
from doxa.engine.run import Calendar, Run
from doxa.engine.sources import make_source
from doxa.errors import BadInput
from doxa.random.keys import seed_of
from doxa.rates import constant
from doxa.storage.describe import describe
from doxa.training.members import Member, net_keys, require_training_arguments
from doxa.training.options import Options
from doxa.training.parts import Parts, build_parts
from doxa.training.problem import build_problem, to_device
from doxa.training.validation import read_validation, require_validation
from doxa.weights.batch_norm import updates_batch_norm
from doxa.weights.layout import bind_prior, lay_out
from doxa.weights.saved_layout import decode_layout, require_same_net

CHECKPOINT_KIND = "doxa.training"  # the kind of its checkpoints


def prepare_run(
    members: Sequence[Member], data: Any, likelihood: Likelihood, options: Options
) -> tuple[Run, EpochMonitor, Checkpointer]:
    """A run before its first step, who watches over it, and where it is kept."""
    for member in members:
        require_training_arguments(member.net, member.learner, likelihood, options.optimiser, options.autocast)
    require_validation(members, options.patience)
    like = _first_weight(members[0].net, options)
    feed = _build_feed(members, data, like, options)
    problem = build_problem(members, feed, likelihood, options.random, like.device, options.autocast)
    fingerprint = feed.fingerprint()  # takes memory of its own, before there are gradients and moments
    validation, validation_fingerprints = read_validation(
        members, problem, like, options.batch_size, options.validation_samples
    )
    parts = build_parts(members, problem, feed, options)
    _warn_fallbacks(parts.gradient.beliefs().noise)
    settings = _describe_settings(members, likelihood, options, parts, feed.size, fingerprint, validation_fingerprints)
    run = _build_run(members, problem, feed, parts, options.epochs)
    checkpointer = _build_checkpointer(run, settings, options)
    monitor = EpochMonitor(
        run,
        checkpointer,
        seeds=[member.seed for member in members],
        priors=[bind_prior(member.learner.prior, problem.layout, problem.start[0]) for member in members],
        settings=settings,
        validation=validation,
        patience=options.patience,
        watch=options.watch,
        watch_every=options.watch_every,
    )
    run.monitor, run.reporter = monitor, monitor
    return run, monitor, checkpointer


def _first_weight(net: nn.Module, options: Options) -> Tensor:
    """One weight of a net [1], on the device that was asked for: what data is made like."""
    _, weights = lay_out(net, options.random)
    return to_device(options.device, weights[:1])


def _build_feed(members: Sequence[Member], data: Any, like: Tensor, options: Options) -> Feed:
    """The batches of all nets, of which BatchNorm must be able to make statistics."""
    rows = [member.rows for member in members for _ in range(member.learner.nets)]
    feed = make_feed(data, like, options.batch_size, options.size, rows)
    if updates_batch_norm(members[0].net) and min(options.batch_size, feed.size) == 1:
        raise BadInput("BatchNorm has no statistics of a single row: use batch_size of at least 2")
    return feed


def _describe_settings(
    members: Sequence[Member],
    likelihood: Likelihood,
    options: Options,
    parts: Parts,
    size: int,
    fingerprint: str,
    validation_fingerprints: Sequence[str | None],
) -> list[dict[str, Any]]:
    """What each member's record tells of its training, and a checkpoint must have in common with who resumes it."""
    return [
        {
            "learner": describe(member.learner),
            "likelihood": describe(likelihood),
            "lr": describe(rate),
            "optimiser": describe(optimiser_settings),
            "epochs": options.epochs,
            "batch_size": options.batch_size,
            "patience": options.patience,
            "validation_samples": None if validation_fingerprint is None else options.validation_samples,
            "seed": member.seed,
            "size": size,
            "autocast": str(options.autocast) if options.autocast else None,
            "data": fingerprint,
            "validation": validation_fingerprint,
        }
        for member, rate, validation_fingerprint, optimiser_settings in zip(
            members, parts.rates, validation_fingerprints, parts.optimiser_settings, strict=True
        )
    ]


def _build_run(members: Sequence[Member], problem: Problem, feed: Feed, parts: Parts, epochs: int) -> Run:
    """A run of the parts on the batches of a feed, watched over by nobody yet."""
    nets = members[0].learner.nets
    net_seeds = torch.tensor([seed_of(key) for key in net_keys(members)], device=problem.start.device)
    # The constant stands where the stepper has rates of its own.
    rates = repeat_per_net([rate or constant(1e-3) for rate in parts.rates], nets)
    return Run(
        problem=replace(problem.without_starts(), buffers=problem.buffers),
        members=Members(len(members), nets),
        gradient=parts.gradient,
        stepper=parts.stepper,
        collector=parts.collector,
        source=make_source(feed, net_seeds),
        net_seeds=net_seeds,
        rates=rates,
        kl_weights=repeat_per_net([member.learner.kl_weight for member in members], nets),
        calendar=Calendar(epochs * feed.batches, feed.batches, feed.batches),
        data=partial(feed.epoch, 0, net_seeds, 0),
    )


def _build_checkpointer(run: Run, settings: list[dict[str, Any]], options: Options) -> Checkpointer:
    """Who saves a run, and finds out whether a saved one is the same."""
    batches = run.calendar.units_per_epoch
    return Checkpointer(
        CHECKPOINT_KIND,
        "run",
        options.checkpoint,
        settings,
        is_due=partial(_is_due, options.checkpoint_steps, options.checkpoint_every, batches),
        changeable=("epochs",),
        check_header=partial(_require_same_weights, run.problem),
    )


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
