"""A layout as JSON and back, and whether a net is the one that a file was written for."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from torch import Tensor, nn

from doxa.errors import BadInput
from doxa.weights.layout import LIKELIHOOD, Layout, Slot


def encode_layout(layout: Layout) -> list[Any]:
    return [[s.name, list(s.shape), s.random] for s in layout.slots]


def decode_layout(rows: list[Any]) -> Layout:
    slots: list[Slot] = []
    for name, shape, random in rows:
        slots.append(Slot(name, tuple(shape), slots[-1].stop if slots else 0, random))
    return Layout(tuple(slots))


def require_same_net(path: str | PathLike[str], layout: Layout, buffers: Mapping[str, Tensor], net: nn.Module) -> None:
    """Refuse a net whose weights are not those the file was written for."""
    file_shapes = {s.name: s.shape for s in layout.slots if not s.name.startswith(LIKELIHOOD)}
    file_shapes |= {k: tuple(b.shape) for k, b in buffers.items()}
    net_shapes = {k: tuple(t.shape) for k, t in (*net.named_parameters(), *net.named_buffers())}
    if file_shapes == net_shapes:
        return
    differences = [
        f"{k}: file {file_shapes.get(k, 'none')}, net {net_shapes.get(k, 'none')}"
        for k in {**file_shapes, **net_shapes}
        if file_shapes.get(k) != net_shapes.get(k)
    ]
    remainder = f" and {len(differences) - 4} more" if len(differences) > 4 else ""
    raise BadInput(
        f"{path} was written for another net ({'; '.join(differences[:4])}{remainder}); "
        "build the net it was trained with"
    )
