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
from doxa.belief import Belief
from doxa.contracts import Inputs, Learner, Likelihood, Problem, Schedule
from doxa.errors import BadInput
from doxa.feed import Feed, feed
from doxa.layout import Chooser, constants, lay_out, mode, settle
from doxa.probe import probe
from doxa.randomness import isolated
from doxa.rates import constant
from doxa.rows import as_pair
from doxa.run import Run, gentle_interrupt

Optimiser = Callable[[Sequence[Tensor]], torch.optim.Optimizer]


def fit(
    net: nn.Module,
    data: Any,
    *,
    learner: Learner,
    likelihood: Likelihood,
    epochs: int = 10,
    batch_size: int = 128,
    lr: float | Schedule = 1e-3,
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
    dict of inputs. `lr` is a number or a schedule from doxa.rates; `optimiser` makes a torch optimiser from a list of
    tensors (fused Adam by default). With `validation` and `patience` training stops when the validation NLL has not
    improved for that many epochs, and the best posterior is kept. With `checkpoint`, a folder, the run is saved every
    `checkpoint_every` epochs and when interrupted; `resume=True` goes on from there, to the same bits.
    """
    if epochs < 1 or checkpoint_every < 1 or (patience is not None and patience < 1):
        raise BadInput(
            f"epochs ({epochs}), checkpoint_every ({checkpoint_every}) and patience ({patience}) must be at least 1"
        )
    if patience is not None and validation is None:
        raise BadInput("patience needs validation data to be patient with: pass validation=(x, y)")
    _, like = lay_out(net, random)
    like = like[:1].to(device) if device is not None else like[:1]
    source = feed(data, like, batch_size, size)
    problem = _problem(net, source, likelihood, random, like.device, (seed,), autocast)
    training = learner.start(problem)
    _tell_fallbacks(training.noise)
    held_out = None if validation is None else _held_out(validation, problem, like)
    rate = lr if callable(lr) else constant(lr)
    make = optimiser or partial(torch.optim.Adam, fused=True)
    settings = {
        "learner": files.describe(learner),
        "likelihood": files.describe(likelihood),
        "lr": files.describe(rate),
        "optimiser": files.describe(getattr(make, "func", make)) if optimiser else "Adam, fused",
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
        prior=settle(learner.prior, problem.layout),
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
    with isolated(like.device), mode(net, training=True), gentle_interrupt() as stop:
        run.go(stop, progress)
    return run.close()


def _problem(
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
        parts = list(validation)
        validation = (torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts]))
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
