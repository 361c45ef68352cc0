"""`doxa.fit`: from a net and data to a belief."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import torch
from torch import nn

from doxa.contracts import Likelihood, Schedule
from doxa.engine.contracts import Learner
from doxa.errors import require_whole
from doxa.predict.belief import Belief
from doxa.training.members import Member
from doxa.training.options import Optimiser, Options
from doxa.training.train import train
from doxa.weights.layout import Chooser


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
    watch_all = None if watch is None else lambda beliefs: [watch(belief) for belief in beliefs]
    options = Options.from_arguments(locals(), watch=watch_all)
    member = Member(net, learner, require_whole("seed", seed, least=None), lr, validation)
    (belief,) = train([member], data, likelihood, options)
    return belief
