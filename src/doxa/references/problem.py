"""What is asked: a net, data and densities, checked, laid out and on their device, for every chain."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.data import DataLoader

from doxa.contracts import Likelihood, Prior, Problem
from doxa.data.rows import Inputs, as_pair, map_inputs, row_count
from doxa.engine.feed import InMemoryFeed
from doxa.errors import BadInput
from doxa.learners.point import Point
from doxa.random.keys import Key
from doxa.training.members import Member, require_training_arguments
from doxa.training.problem import build_problem, to_device
from doxa.weights.layout import LIKELIHOOD, bind_prior, fresh_weights, lay_out, learning_flags
from doxa.weights.saved_layout import decode_layout, require_same_net


@dataclass(frozen=True)
class Question:
    """A problem with a start for each chain, its data as one batch, and its prior, in the dtype of the arithmetic."""

    problem: Problem
    x: Inputs
    y: Tensor
    prior: Prior
    bound_prior: Prior  # the same in the dtype of the net
    original_x: Inputs  # the same in the dtype of the net
    dtype: torch.dtype  # of the net
    fingerprint: str


def build_question(
    net: nn.Module,
    data: Any,
    likelihood: Likelihood,
    prior: Prior,
    numbers: Sequence[int],
    seed: int,
    start: Tensor | None,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
) -> Question:
    """All of it, or an error that says what is wrong."""
    _require_arguments(net, data, likelihood, prior, dtype)
    _, weights = lay_out(net)
    like = to_device(device, weights[:1])
    original_x, original_y = as_pair(data, like, "data")
    dtype = dtype or like.dtype
    x, y = (_as_dtype(part, dtype) for part in (original_x, original_y))
    assert isinstance(y, Tensor)
    feed = InMemoryFeed(x, y, row_count(x))
    fingerprint = feed.fingerprint()
    net_in_dtype = net if like.dtype == dtype else copy.deepcopy(net).to(dtype)
    members = [Member(net_in_dtype, Point(prior)) for _ in numbers]
    problem = build_problem(members, feed, likelihood, None, like.device, None)
    _require_a_density(problem)
    keys: list[Key] = [(seed, "chain", k) for k in numbers]
    problem = replace(problem, start=_starts(net, weights, problem, keys, start), seeds=tuple(keys))
    return Question(
        problem,
        x,
        feed.y,
        bind_prior(prior, problem.layout, problem.start[0]),
        bind_prior(prior, problem.layout, weights.to(like.device)),
        original_x,
        like.dtype,
        fingerprint,
    )


def require_same_weights(problem: Problem, path: Path, header: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of another net."""
    buffers = {name: b[0] for name, b in problem.buffers.items()}
    require_same_net(path, decode_layout(header["layout"]), buffers, problem.net)


def _require_arguments(net: Any, data: Any, likelihood: Any, prior: Any, dtype: Any) -> None:
    """Refuse what cannot be asked, before anything is computed."""
    if isinstance(prior, type) or not (hasattr(prior, "grad_log_prob") and hasattr(prior, "log_prob")):
        raise BadInput(f"prior must be one of doxa.priors, e.g. doxa.priors.gaussian(1.0); got {prior!r}")
    require_training_arguments(net, Point(prior), likelihood, None, None)
    if isinstance(data, DataLoader):
        raise BadInput(
            "Hamiltonian Monte Carlo needs all rows for every step, and a DataLoader gives some at a time: give a pair "
            "(x, y) of tensors or arrays, with rows= for how many go through the nets at once"
        )
    if data is None:
        raise BadInput("a likelihood needs data: give a pair (x, y) of tensors or arrays")
    if dtype not in (None, torch.float32, torch.float64):
        raise BadInput(f"dtype must be torch.float32 or torch.float64, that of the arithmetic; got {dtype!r}")
    norms = [
        n
        for n, m in net.named_modules()
        if isinstance(m, _BatchNorm) and (learning_flags(net)[m] or not m.track_running_stats)
    ]
    if norms:
        raise BadInput(
            f"{', '.join(norms)} makes what a row's output is depend on the other rows, so that rows have no "
            "likelihood of their own, and there is no posterior to sample: take a norm within each row (nn.GroupNorm, "
            "nn.LayerNorm), or freeze it by .eval() and requires_grad_(False) while other modules are in training mode"
        )


def _require_a_density(problem: Problem) -> None:
    """Refuse nets whose energy is not a function of weights that have a prior."""
    learned = [slot.name.removeprefix(LIKELIHOOD) for slot in problem.layout.slots if slot.name.startswith(LIKELIHOOD)]
    if learned:
        raise BadInput(
            f"the likelihood learns {', '.join(learned)} as a point, for which there is no prior: fix it, e.g. "
            "doxa.likelihoods.gaussian(0.1), or let the net tell it, as gaussian_per_input does"
        )
    points = [slot.name for slot in problem.layout.slots if not slot.random]
    if points:
        raise BadInput(f"{', '.join(points)} would be point estimates: freeze them with requires_grad_(False)")
    if problem.uses.draws_random_numbers:
        raise BadInput(
            "the net draws random numbers of its own, as nn.Dropout does, so that weights have no one energy: take "
            "those modules out, or put them into evaluation mode"
        )


def _starts(net: nn.Module, weights: Tensor, problem: Problem, keys: Sequence[Key], start: Tensor | None) -> Tensor:
    """Where each chain begins [K, P]: a fresh start of the net's layers by its own key, or what is given."""
    like = problem.start[0]
    if start is None:
        # In the net's own precision, so that another one of the arithmetic begins at the same.
        fresh = [fresh_weights(net, problem.layout, weights, (*key, "start")) for key in keys]
        return torch.stack(fresh).to(like)
    expected = (len(keys), problem.layout.size)
    if not isinstance(start, Tensor) or tuple(start.shape) != expected:
        shape = tuple(start.shape) if isinstance(start, Tensor) else type(start).__name__
        raise BadInput(f"start must be a tensor [chains, weights] of shape {expected}; got {shape}")
    if not bool(start.isfinite().all()):
        raise BadInput("start holds weights that are NaN or infinite; chains must begin at finite ones")
    return start.detach().to(like, copy=True)


def _as_dtype(values: Inputs, dtype: torch.dtype) -> Inputs:
    """Real numbers in another precision."""
    return map_inputs(values, lambda t: t.to(dtype) if t.is_floating_point() else t)
