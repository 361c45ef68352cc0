"""What is to be learned, as its parts are told of it: the net probed on a few rows, laid out, on its device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from doxa.contracts import Inputs, Likelihood, Problem
from doxa.data.rows import as_pair, joined
from doxa.engine.feed import Feed
from doxa.errors import BadInput
from doxa.random.keys import isolated
from doxa.training.members import Member, keys
from doxa.weights.layout import Chooser, as_rows, constants, lay_out, learning_modes
from doxa.weights.probe import probe, sails


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


def on(device: torch.device | str | None, like: Tensor) -> Tensor:
    """A tensor on the device that was asked for, if any was."""
    if device is None:
        return like
    try:
        return like.to(device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device={device!r} cannot be used here: {error}") from None


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


def held_out_rows(validation: Any, problem: Problem, like: Tensor) -> tuple[Inputs, Tensor]:
    if isinstance(validation, DataLoader):
        with isolated(like.device):
            validation = joined(list(validation))
    x, y = as_pair(validation, like, "validation")
    _, output = probe(problem.net, problem.layout, problem.start[0], {k: b[0] for k, b in problem.buffers.items()}, x)
    return x, problem.likelihood.check(output, y)
