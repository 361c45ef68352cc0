"""`doxa.fit`: from a net and data to a belief."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from doxa import checkpoint as files
from doxa.batch_norm import has_batch_norm
from doxa.belief import Belief
from doxa.contracts import Inputs, Learner, Likelihood, Problem, Schedule
from doxa.errors import BadInput, whole
from doxa.feed import Feed, feed
from doxa.layout import Chooser, constants, lay_out, mode, settle
from doxa.probe import probe
from doxa.randomness import isolated
from doxa.rates import constant
from doxa.rows import as_pair, joined
from doxa.run import Run, gentle_interrupt

EXAMPLES = {"learner": "variational(doxa.priors.gaussian(1.0))", "likelihood": "categorical()"}

Optimiser = Callable[[Sequence[Tensor]], torch.optim.Optimizer]


def fit(
    net: nn.Module,
    data: Any,
    *,
    learner: Learner,
    likelihood: Likelihood,
    epochs: int = 10,
    batch_size: int = 128,
    lr: float | Schedule | None = None,
    optimiser: Optimiser | None = None,
    validation: Any = None,
    validation_samples: int = 8,
    patience: int | None = None,
    seed: int = 0,
    size: int | None = None,
    random: Chooser | None = None,
    device: torch.device | str | None = None,
    autocast: torch.dtype | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = 1,
    resume: bool = False,
    progress: bool = True,
) -> Belief:
    """Learn a belief about the weights of `net`, which itself is never changed.

    min_q F/N = −(1/N) Σᵢ E_q log p(yᵢ | xᵢ, w) + (β/N) KL(q‖p)

    `data` and `validation` are pairs (x, y) of tensors or arrays, or a DataLoader of such pairs; x may be a tuple or
    dict of inputs. `lr` is a number or a schedule from doxa.rates, 1e-3 by default; `optimiser` makes a torch optimiser
    from a list of tensors (fused Adam by default), and without `lr` keeps its own rates. With `validation` and
    `patience` training stops when the validation NLL has not improved for that many epochs, and the best posterior is
    kept. With `checkpoint`, a folder, the run is saved every `checkpoint_every` epochs and when interrupted;
    `resume=True` goes on from there, to the same bits.
    """
    seed = whole("seed", seed, least=None)
    epochs, batch_size = whole("epochs", epochs), whole("batch_size", batch_size)
    checkpoint_every, validation_samples = (
        whole("checkpoint_every", checkpoint_every),
        whole("validation_samples", validation_samples),
    )
    patience = None if patience is None else whole("patience", patience)
    _require_members(net, learner, likelihood, optimiser, autocast)
    if patience is not None and validation is None:
        raise BadInput("patience needs validation data to be patient with: pass validation=(x, y)")
    _, like = lay_out(net, random)
    like = _on(device, like[:1])
    source = feed(data, like, batch_size, size)
    if has_batch_norm(net) and min(batch_size, source.size) == 1:
        raise BadInput("BatchNorm has no statistics of a single row: use batch_size of at least 2")
    problem = pose(net, source, likelihood, random, like.device, (seed,), autocast)
    training = learner.start(problem)
    _tell_fallbacks(training.noise)
    held_out = None if validation is None else _held_out(validation, problem, like)
    if lr is not None and "lr" in getattr(optimiser, "keywords", {}):
        raise BadInput("the learning rate is given twice, to the optimiser and as lr=; leave one out")
    if lr is None and optimiser is None:
        lr = 1e-3
    rate = lr if lr is None or callable(lr) else constant(lr)
    make = optimiser or partial(torch.optim.Adam, fused=True)
    settings = {
        "learner": files.describe(learner),
        "likelihood": files.describe(likelihood),
        "lr": files.describe(rate),
        "optimiser": files.describe(make),
        "epochs": epochs,
        "batch_size": batch_size,
        "patience": patience,
        "validation_samples": validation_samples if validation is not None else None,
        "seed": seed,
        "size": source.size,
        "autocast": str(autocast) if autocast else None,
        "data": source.fingerprint(),
    }
    run = Run(
        problem=problem,
        prior=settle(learner.prior, problem.layout, problem.start),
        source=source,
        training=training,
        optimiser=_make(make, training.parameters),
        rate=rate,
        epochs=epochs,
        seed=seed,
        held_out=held_out,
        validation_samples=validation_samples,
        patience=patience,
        folder=None if checkpoint is None else Path(checkpoint),
        every=checkpoint_every,
        settings=settings,
    )
    run.open(resume)
    with isolated(like.device), mode(net, training=True), torch.enable_grad(), gentle_interrupt() as stop:
        run.go(stop, progress)
    return run.close()


def _require_members(net: Any, learner: Any, likelihood: Any, optimiser: Any, autocast: Any) -> None:
    """Refuse what is not a member of its room, before anything else happens."""
    if not isinstance(net, nn.Module):
        raise BadInput(f"net must be a torch module; got {type(net).__name__}")
    for name, value, method in (("learner", learner, "start"), ("likelihood", likelihood, "log_prob")):
        if isinstance(value, type) or not hasattr(value, method):
            raise BadInput(
                f"{name} must be one of doxa.{name}s, with brackets: e.g. doxa.{name}s.{EXAMPLES[name]}; got {value!r}"
            )
    if optimiser is not None and not callable(optimiser):
        raise BadInput(
            "optimiser must make a torch optimiser from a list of tensors, e.g. torch.optim.AdamW or "
            f"functools.partial(torch.optim.SGD, momentum=0.9); got {type(optimiser).__name__}"
        )
    if autocast is not None and not (isinstance(autocast, torch.dtype) and autocast.is_floating_point):
        raise BadInput(f"autocast must be a floating-point torch dtype such as torch.bfloat16; got {autocast!r}")


def _on(device: torch.device | str | None, like: Tensor) -> Tensor:
    if device is None:
        return like
    try:
        return like.to(device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device={device!r} cannot be used here: {error}") from None


def pose(
    net: nn.Module,
    source: Feed,
    likelihood: Likelihood,
    random: Chooser | None,
    device: torch.device,
    seed: tuple[int | str, ...],
    autocast: torch.dtype | None,
) -> Problem:
    """Probe the net on a few rows, so that layout, uses and the likelihood's own parameters are known."""
    layout, start = lay_out(net, random)
    start = start.to(device)
    buffers = {k: b.to(device) for k, b in constants(net).items()}
    uses, output = probe(net, layout, start, buffers, source.example())
    own = likelihood.parameters(output)
    source.check(likelihood, output)
    layout, start = lay_out(net, random, own)
    return Problem(net, layout, uses, likelihood, start.to(device), buffers, source.size, seed, autocast)


def _held_out(validation: Any, problem: Problem, like: Tensor) -> tuple[Inputs, Tensor]:
    if isinstance(validation, DataLoader):
        with isolated(like.device):
            validation = joined(list(validation))
    x, y = as_pair(validation, like, "validation")
    _, output = probe(problem.net, problem.layout, problem.start, problem.buffers, x)
    return x, problem.likelihood.check(output, y)


def _make(make: Optimiser, parameters: Sequence[Tensor]) -> torch.optim.Optimizer:
    optimiser = make(list(parameters))
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise BadInput(
            f"optimiser must make a torch optimiser from a list of tensors; it made a {type(optimiser).__name__}"
        )
    if isinstance(optimiser, torch.optim.LBFGS):
        raise BadInput("LBFGS evaluates its loss many times a step; choose an optimiser that needs no closure")
    return optimiser


def _tell_fallbacks(noise: dict[str, str]) -> None:
    shared = [f"{name}: {how}" for name, how in noise.items() if how.startswith("shared (")]
    if shared:
        warnings.warn(f"these weights get one shared draw, not the noise asked for: {'; '.join(shared)}", stacklevel=3)
