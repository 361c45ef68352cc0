"""What is to be learned, as its parts are told of it: the net probed on a few rows, laid out, on its device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from doxa.contracts import Likelihood, Problem
from doxa.engine.feed import Feed
from doxa.errors import BadInput
from doxa.training.members import Member, net_keys
from doxa.weights.layout import Chooser, as_rows, lay_out, learning_flags, untrained_tensors
from doxa.weights.probe import probe, supports_vmap


def build_problem(
    members: Sequence[Member],
    feed: Feed,
    likelihood: Likelihood,
    random: Chooser | None,
    device: torch.device,
    autocast: torch.dtype | None,
) -> Problem:
    """Probe the net on a few rows, so that layout, uses and the likelihood's own parameters are known."""
    net = members[0].net
    layout, start = lay_out(net, random)
    buffers = {k: b.to(device) for k, b in untrained_tensors(net).items()}
    uses, output = probe(net, layout, start.to(device), buffers, feed.example())
    likelihood_parameters = likelihood.parameters(output)
    feed.check(likelihood, output)
    layout, _ = lay_out(net, random, likelihood_parameters)
    starts: list[Tensor] = []
    net_buffers: list[dict[str, Tensor]] = []
    for member in members:
        member_layout, start = lay_out(member.net, random, likelihood_parameters)
        if member.net is not net:
            _require_alike(net, member.net, member_layout == layout and (not starts or start.dtype == starts[0].dtype))
        starts += [start] * member.learner.nets
        net_buffers += [untrained_tensors(member.net)] * member.learner.nets
    stacked_buffers = {k: torch.stack([b[k] for b in net_buffers]).to(device) for k in buffers}
    if uses.supports_vmap and (len(starts) > 1 or device.type == "cuda"):
        first = {k: b[0] for k, b in stacked_buffers.items()}
        vmap_works = supports_vmap(net, layout, starts[0].to(device), first, feed.example(), autocast)
        uses = replace(uses, supports_vmap=vmap_works)
    vectorized = len(starts) > 1 and uses.supports_vmap
    return Problem(
        net,
        layout,
        uses,
        likelihood,
        as_rows(starts).to(device),
        stacked_buffers,
        tuple(net_keys(members)),
        vectorized,
        autocast,
    )


def to_device(device: torch.device | str | None, like: Tensor) -> Tensor:
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
    traits, other_traits = ({name: _traits(m) for name, m in module.named_modules()} for module in (net, other))
    if traits != other_traits:
        name = next((n for n in [*traits, *other_traits] if traits.get(n) != other_traits.get(n)), "")
        raise BadInput(
            "the nets of a fleet must have one architecture, and differ in their weights alone: "
            f"{name or 'the net'} is {_describe_module(net, name)} in the first and "
            f"{_describe_module(other, name)} in another"
        )
    if [*learning_flags(net).values()] != [*learning_flags(other).values()]:
        raise BadInput(
            "the nets of a fleet run as one, and some modules are in training mode in one of them and in evaluation "
            "mode in another: put all of them into the same modes"
        )


def _traits(module: nn.Module) -> tuple[Any, ...]:
    """What a module computes by, besides its weights."""
    plain = bool, int, float, str, tuple, torch.dtype, type(None)
    settings = {
        k: v for k, v in vars(module).items() if k != "training" and not k.startswith("_") and isinstance(v, plain)
    }
    return type(module), settings, {k: (b.shape, b.dtype) for k, b in module.named_buffers(recurse=False)}


def _describe_module(net: nn.Module, name: str) -> str:
    module = dict(net.named_modules()).get(name)
    return "missing" if module is None else str(module).splitlines()[0]
