"""BatchNorm's running statistics, taken anew where the weights have changed under them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from doxa.data.rows import Inputs, row_count, take_rows
from doxa.random.keys import isolated_rng
from doxa.weights.layout import autocast_context, call, learning_flags, module_mode


def has_batch_norm(net: nn.Module) -> bool:
    """Whether any module of the net keeps running statistics of its batches."""
    return any(isinstance(m, _BatchNorm) and m.track_running_stats for m in net.modules())


def updates_batch_norm(net: nn.Module) -> bool:
    """Whether any module of the net brings such statistics up to date while it learns."""
    return any(
        isinstance(m, _BatchNorm) and m.track_running_stats and training for m, training in learning_flags(net).items()
    )


def statistics_names(net: nn.Module) -> list[str]:
    """The names of the running means and variances."""
    norms = [name for name, m in net.named_modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    return [f"{name}.{kind}".lstrip(".") for name in norms for kind in ("running_mean", "running_var")]


def refresh_batch_norm(
    net: nn.Module, weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Inputs, rows: int = 1024
) -> dict[str, Tensor]:
    """Buffers whose BatchNorm statistics are the plain average over batches of x (Izmailov et al., 2018, for SWA)."""
    batches = (take_rows(x, slice(start, start + rows)) for start in range(0, row_count(x), rows))
    return refresh_batch_norm_over(net, weights, buffers, batches, learning_flags(net).__getitem__)


@torch.no_grad()
def refresh_batch_norm_over(
    net: nn.Module,
    weights: Mapping[str, Tensor],
    buffers: Mapping[str, Tensor],
    batches: Iterable[Inputs],
    is_refreshed: Callable[[nn.Module], bool],
    autocast: torch.dtype | None = None,
) -> dict[str, Tensor]:
    """The same over given batches, for the BatchNorms that are wanted; those that are not keep theirs."""
    all_norms = {name: m for name, m in net.named_modules() if isinstance(m, _BatchNorm) and m.track_running_stats}
    norms = {name: m for name, m in all_norms.items() if is_refreshed(m)}
    refreshed = {k: b.clone() for k, b in buffers.items()}
    momenta = {name: m.momentum for name, m in norms.items()}
    for name in norms:
        prefix = f"{name}." if name else ""
        refreshed[f"{prefix}running_mean"].zero_()
        refreshed[f"{prefix}running_var"].fill_(1)
        refreshed[f"{prefix}num_batches_tracked"].zero_()
    device = next(iter(weights.values())).device
    try:
        for m in norms.values():
            m.momentum = None  # torch's word for a cumulative average
        with module_mode(net, training=False), isolated_rng(device), autocast_context(device, autocast):
            for m in norms.values():
                m.training = True
            for number, batch in enumerate(batches):
                if row_count(batch) > 1 or number == 0:
                    call(net, weights, refreshed, batch)
    finally:
        for name, m in norms.items():
            m.momentum = momenta[name]
    return refreshed


@torch.no_grad()
def average_buffers(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of what several samples of the weights made of the same buffers."""
    # As a step away from the first: what is the same in all of them stays so, to the bit.
    return {
        name: value + torch.stack([p[name] - value for p in parts]).mean(0) if value.dtype.is_floating_point else value
        for name, value in parts[0].items()
    }
