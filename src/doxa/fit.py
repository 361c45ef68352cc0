"""`doxa.fit`: from a net and data to a belief."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from doxa import checkpoint as files
from doxa.batch_norm import learns_batch_norm
from doxa.belief import Belief
from doxa.collectors.best import BestCollector
from doxa.contracts import Inputs, Likelihood, Problem, Schedule
from doxa.engine.checkpoint import BELIEF, Checkpointer
from doxa.engine.contracts import Collector, Gradient, Journey, Learner, Stepper
from doxa.engine.driver import drive
from doxa.engine.epochs import Epochs, Validation
from doxa.engine.members import Members, each_net
from doxa.engine.run import Calendar, Run, at_work
from doxa.engine.sources import source_of
from doxa.errors import BadInput, Diverged, whole
from doxa.feed import Feed, InMemory, feed
from doxa.interrupt import gentle_interrupt
from doxa.layout import Chooser, as_rows, constants, lay_out, learning_modes, settle
from doxa.optimisers.adam import Adam
from doxa.optimisers.torchs import Torchs
from doxa.options import Optimiser, Options, require_autocast, require_optimiser
from doxa.probe import probe, sails
from doxa.progress import Progress
from doxa.randomness import Key, isolated, seed_of
from doxa.rates import constant
from doxa.rows import as_pair, joined
from doxa.search import engines

STATE = "doxa.training"  # the kind of its checkpoints
EXAMPLES = {"learner": "variational(doxa.priors.gaussian(1.0))", "likelihood": "categorical()"}


def fit(
    net: nn.Module,
    data: Any,
    *,
    learner: Learner,
    likelihood: Likelihood,
    epochs: int = Options.epochs,
    batch_size: int = Options.batch_size,
    lr: float | Schedule | None = None,
    optimiser: Optimiser | None = Options.optimiser,
    validation: Any = None,
    validation_samples: int = Options.validation_samples,
    patience: int | None = Options.patience,
    seed: int = 0,
    size: int | None = Options.size,
    random: Chooser | None = Options.random,
    device: torch.device | str | None = Options.device,
    autocast: torch.dtype | None = Options.autocast,
    checkpoint: str | PathLike[str] | None = Options.checkpoint,
    checkpoint_every: int = Options.checkpoint_every,
    checkpoint_steps: int | None = Options.checkpoint_steps,
    resume: bool = Options.resume,
    progress: bool = Options.progress,
    watch: Callable[[Belief], Mapping[str, float]] | None = None,
    watch_every: int = Options.watch_every,
) -> Belief:
    """Learn a belief about the weights of `net`, which itself is never changed.

    min_q F/N = −(1/N) Σᵢ E_q log p(yᵢ | xᵢ, w) + (β/N) KL(q‖p)

    `data` and `validation` are pairs (x, y) of tensors or arrays, or a DataLoader of such pairs; x may be a tuple or
    dict of inputs. `lr` is a number or a schedule from doxa.rates, 1e-3 by default; `optimiser` is one of
    doxa.optimisers, Adam by default, or makes a torch optimiser from a list of tensors, which without `lr` keeps its
    own rates. With `validation` and `patience` training stops when the validation NLL has not improved for that many
    epochs, and the best posterior is kept. With `checkpoint`, a folder, the run is saved every `checkpoint_every`
    epochs, within them every `checkpoint_steps` if given, and when interrupted; `resume=True` goes on from there, to
    the same bits. `watch` is shown the belief after every `watch_every` epochs, and what it returns by name joins the
    history.
    """
    each = None if watch is None else lambda beliefs: [watch(belief) for belief in beliefs]
    options = Options.among(locals(), watch=each)
    member = Member(net, learner, whole("seed", seed, least=None), lr, validation)
    (belief,) = train([member], data, likelihood, options)
    return belief


@dataclass(frozen=True)
class Member:
    """One of a fleet: where its net starts, how it learns, and what may differ from its neighbours."""

    net: nn.Module
    learner: Learner
    seed: int = 0
    lr: float | Schedule | None = None
    validation: Any = None
    rows: Any = None  # indices of the data that it learns from
    number: int | None = None  # in its fleet


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
    ready = {key: _held_out(validation, problem, like) for key, validation in checked.items()}
    held_out = [ready[id(one.validation)] for one in members] if tested else None
    prints = {key: InMemory(*pair, batch_size).fingerprint() for key, pair in ready.items()}
    tests = [prints[id(one.validation)] if tested else None for one in members]
    parts = composed(members, problem, source, options)
    _tell_fallbacks(parts.gradient.beliefs().noise)
    settings = [
        {
            "learner": files.describe(one.learner),
            "likelihood": files.describe(likelihood),
            "lr": files.describe(rate),
            "optimiser": files.describe(steps),
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
    layout, buffers = files.decode_layout(header["layout"]), {k: b[0] for k, b in problem.buffers.items()}
    files.require_same_net(path, layout, buffers, problem.net)
    if layout != problem.layout:
        raise BadInput(
            f"{path} belongs to a run in which other weights were random or frozen; use the same call to go on"
        )


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


def _due(often: int | None, every: int, batches: int, done: int) -> bool:
    """Whether a run is saved after so many steps: `often` within an epoch, and after `every` so many of them."""
    epoch, rest = divmod(done, batches)
    return (often is not None and done % often == 0) or (rest == 0 and epoch % every == 0)


def keys(members: Sequence[Member]) -> list[Key]:
    """A name for the random numbers of every net: what it is alone, it is in a fleet."""
    return [(one.seed, "net", j) for one in members for j in range(one.learner.nets)]


def _rates(members: Sequence[Member], optimiser: Any) -> list[Schedule] | None:
    """A schedule for each member; None where the optimiser has rates of its own."""
    given = [one.lr for one in members]
    if any(lr is not None for lr in given) and "lr" in getattr(optimiser, "keywords", {}):
        raise BadInput("the learning rate is given twice, to the optimiser and as lr=; leave one out")
    if not hasattr(optimiser, "start") and all(lr is None for lr in given):
        return None
    filled = [1e-3 if lr is None else lr for lr in given]
    return [lr if callable(lr) else constant(float(lr) if isinstance(lr, Real) else lr) for lr in filled]


def require_members(net: Any, learner: Any, likelihood: Any, optimiser: Any, autocast: Any) -> None:
    """Refuse what is not a member of its room, before anything else happens."""
    if not isinstance(net, nn.Module):
        raise BadInput(f"net must be a torch module; got {type(net).__name__}")
    for name, value, method in (("learner", learner, "start"), ("likelihood", likelihood, "log_prob")):
        if isinstance(value, type) or not hasattr(value, method):
            raise BadInput(
                f"{name} must be one of doxa.{name}s, with brackets: e.g. doxa.{name}s.{EXAMPLES[name]}; got {value!r}"
            )
    require_optimiser(optimiser)
    require_autocast(autocast)


def on(device: torch.device | str | None, like: Tensor) -> Tensor:
    """A tensor on the device that was asked for, if any was."""
    if device is None:
        return like
    try:
        return like.to(device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device={device!r} cannot be used here: {error}") from None


def pose(
    members: Sequence[Member],
    source: Feed,
    likelihood: Likelihood,
    random: Chooser | None,
    device: torch.device,
    autocast: torch.dtype | None,
) -> Problem:
    """Probe the net on a few rows, so that layout, uses and the likelihood's own parameters are known."""
    net = members[0].net
    layout, start = lay_out(net, random)
    buffers = {k: b.to(device) for k, b in constants(net).items()}
    uses, output = probe(net, layout, start.to(device), buffers, source.example())
    own = likelihood.parameters(output)
    source.check(likelihood, output)
    layout, _ = lay_out(net, random, own)
    starts: list[Tensor] = []
    kept: list[dict[str, Tensor]] = []
    for one in members:
        found, start = lay_out(one.net, random, own)
        if one.net is not net:
            _require_alike(net, one.net, found == layout and (not starts or start.dtype == starts[0].dtype))
        starts += [start] * one.learner.nets
        kept += [constants(one.net)] * one.learner.nets
    stacked = {k: torch.stack([b[k] for b in kept]).to(device) for k in buffers}
    if uses.vectorises and (len(starts) > 1 or device.type == "cuda"):
        first = {k: b[0] for k, b in stacked.items()}
        tried = sails(net, layout, starts[0].to(device), first, source.example(), autocast)
        uses = replace(uses, vectorises=tried)
    together = len(starts) > 1 and uses.vectorises
    return Problem(
        net, layout, uses, likelihood, as_rows(starts).to(device), stacked, tuple(keys(members)), together, autocast
    )


def _require_alike(net: nn.Module, other: nn.Module, same_weights: bool) -> None:
    """Refuse a net that is another function of its weights than the one that runs for all."""
    if not same_weights:
        raise BadInput("the nets of a fleet must have one architecture: the same weights of the same shapes and dtype")
    ours, theirs = ({name: _traits(m) for name, m in one.named_modules()} for one in (net, other))
    if ours != theirs:
        name = next((n for n in [*ours, *theirs] if ours.get(n) != theirs.get(n)), "")
        raise BadInput(
            "the nets of a fleet must have one architecture, and differ in their weights alone: "
            f"{name or 'the net'} is {_said(net, name)} in the first and {_said(other, name)} in another"
        )
    if [*learning_modes(net).values()] != [*learning_modes(other).values()]:
        raise BadInput(
            "the nets of a fleet run as one, and some modules are in training mode in one of them and in evaluation "
            "mode in another: put all of them into the same modes"
        )


def _traits(module: nn.Module) -> tuple[Any, ...]:
    """What a module computes by, besides its weights."""
    plain = bool, int, float, str, tuple, torch.dtype, type(None)
    own = {k: v for k, v in vars(module).items() if k != "training" and not k.startswith("_") and isinstance(v, plain)}
    return type(module), own, {k: (b.shape, b.dtype) for k, b in module.named_buffers(recurse=False)}


def _said(net: nn.Module, name: str) -> str:
    found = dict(net.named_modules()).get(name)
    return "missing" if found is None else str(found).splitlines()[0]


def _held_out(validation: Any, problem: Problem, like: Tensor) -> tuple[Inputs, Tensor]:
    if isinstance(validation, DataLoader):
        with isolated(like.device):
            validation = joined(list(validation))
    x, y = as_pair(validation, like, "validation")
    _, output = probe(problem.net, problem.layout, problem.start[0], {k: b[0] for k, b in problem.buffers.items()}, x)
    return x, problem.likelihood.check(output, y)


def _tell_fallbacks(noise: dict[str, str]) -> None:
    shared = [f"{name}: {how}" for name, how in noise.items() if how.startswith("shared (")]
    if shared:
        warnings.warn(f"these weights get one shared draw, not the noise asked for: {'; '.join(shared)}", stacklevel=4)
