"""A layout as JSON and back, and whether a net is the one that a file was written for."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from torch import Tensor, nn

from doxa.errors import BadInput
from doxa.storage import fields
from doxa.weights.layout import LIKELIHOOD, Layout, Slot


def encode_layout(layout: Layout) -> list[Any]:
    return [[s.name, list(s.shape), s.random] for s in layout.slots]


def decode_layout(rows: Any) -> Layout:
    """The way back from `encode_layout`; a ValueError names what no layout has."""
    slots: list[Slot] = []
    names: set[str] = set()
    for i, row in enumerate(fields.items("layout", rows)):
        where = f"layout[{i}]"
        raw_name, raw_shape, raw_random = fields.items(where, row, count=3)
        name, shape = fields.text(f"{where}[0]", raw_name), fields.shape(f"{where}[1]", raw_shape)
        random = fields.truth(f"{where}[2]", raw_random)
        if name in names:
            fields.refuse(f"{where}[0]", name, "each name once")
        if random and slots and not slots[-1].random:
            fields.refuse(where, row, "random weights before all others")
        names.add(name)
        slots.append(Slot(name, shape, slots[-1].stop if slots else 0, random))
    if not slots or not slots[-1].stop:
        fields.refuse("layout", rows, "at least one weight")
    return Layout(tuple(slots))


def require_same_net(path: str | PathLike[str], layout: Layout, buffers: Mapping[str, Tensor], net: nn.Module) -> None:
    """Refuse a net whose weights are not those the file was written for."""
    file_shapes = {s.name: s.shape for s in layout.slots if not s.name.startswith(LIKELIHOOD)}
    file_shapes |= {k: tuple(b.shape) for k, b in buffers.items()}
    net_tensors = dict((*net.named_parameters(), *net.named_buffers()))
    net_shapes = {k: tuple(t.shape) for k, t in net_tensors.items()}
    differences = [
        f"{k}: file {file_shapes.get(k, 'none')}, net {net_shapes.get(k, 'none')}"
        for k in {**file_shapes, **net_shapes}
        if file_shapes.get(k) != net_shapes.get(k)
    ] or [
        f"{k}: file {b.dtype}, net {net_tensors[k].dtype}"
        for k, b in buffers.items()
        if not (b.dtype == net_tensors[k].dtype or (b.is_floating_point() and net_tensors[k].is_floating_point()))
    ]
    if not differences:
        return
    remainder = f" and {len(differences) - 4} more" if len(differences) > 4 else ""
    raise BadInput(
        f"{path} was written for another net ({'; '.join(differences[:4])}{remainder}); "
        "build the net it was trained with"
    )
