"""The parts of a policy from the header and the tensors of its file, each checked against the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from doxa.errors import shorten
from doxa.search.episodes.observation_normalizer import ObservationNormalizer
from doxa.storage import fields
from doxa.storage.rows import are_finite
from doxa.storage.sealed import explain_contents
from doxa.weights.layout import Layout
from doxa.weights.saved_layout import decode_layout

WHICH = ("best", "mean")
BUFFERS = "buffers."


@dataclass(frozen=True)
class SavedPolicy:
    """What the file of a policy holds."""

    layout: Layout
    weights: dict[str, Tensor]  # [P] each
    normalizers: dict[str, ObservationNormalizer | None]
    scale: Tensor  # [P]
    buffers: dict[str, Tensor]
    solved: bool
    trajectory: list[dict[str, float]]
    environment: str | None
    longest: int
    bound: str | None


def decode_policy(path: str | PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> SavedPolicy:
    """A policy's parts; BrokenFile names the field that cannot be, whatever is wrong with it."""
    with explain_contents(path):
        return _decode(header, dict(tensors))


def require_sound(weights: Mapping[str, Tensor], normalizers: Mapping[str, ObservationNormalizer | None]) -> None:
    """Refuse, by a ValueError, numbers that no policy can act by."""
    for name, values in weights.items():
        if not values.is_floating_point() or not are_finite(values):
            raise ValueError(f"{name} holds NaN, infinity or no real numbers; expected finite ones")
    for name, normalizer in normalizers.items():
        if normalizer is not None and not bool(
            (normalizer.mean.isfinite() & (normalizer.squares >= 0) & normalizer.squares.isfinite()).all()
        ):
            raise ValueError(
                f"{name}.seen and {name}.squares are no statistics; expected finite numbers, squares from 0"
            )


def _decode(header: Mapping[str, Any], unused: dict[str, Tensor]) -> SavedPolicy:
    layout = decode_layout(header["layout"])
    weights = {name: unused.pop(name) for name in (*WHICH, "scale")}
    for name, values in weights.items():
        if values.shape != (layout.size,) or values.dtype != weights["best"].dtype:
            raise ValueError(
                f"{name} holds {values.dtype} of shape {list(values.shape)}; expected {weights['best'].dtype} of shape "
                f"[{layout.size}], the weights of the layout"
            )
    counts = fields.mapping("counts", header["counts"])
    normalizers = {name: _decode_normalizer(name, counts[name], unused) for name in WHICH}
    require_sound(weights, normalizers)
    buffers = {k.removeprefix(BUFFERS): unused.pop(k) for k in list(unused) if k.startswith(BUFFERS)}
    for name in unused:
        raise ValueError(f"it holds a tensor {shorten(name)!r} that belongs to nothing")
    for slot in layout.slots:
        if slot.name in buffers:
            raise ValueError(f"{slot.name} is both a weight and a buffer")
    environment, bound = header["environment"], header["bound"]
    return SavedPolicy(
        layout,
        weights,
        normalizers,
        weights.pop("scale"),
        buffers,
        fields.truth("solved", header["solved"]),
        _decode_trajectory(header["trajectory"]),
        None if environment is None else fields.text("environment", environment),
        fields.whole("longest", header["longest"], 1),
        None if bound is None else fields.text("bound", bound),
    )


def _decode_normalizer(name: str, count: Any, unused: dict[str, Tensor]) -> ObservationNormalizer | None:
    if count is None:
        return None
    mean, squares = unused.pop(f"{name}.seen"), unused.pop(f"{name}.squares")
    if mean.shape != squares.shape or (mean.dtype, squares.dtype) != (torch.float64, torch.float64):
        raise ValueError(f"{name}.seen and {name}.squares differ in shape, or are not of double precision")
    return ObservationNormalizer(fields.whole(f"counts.{name}", count), mean, squares)


def _decode_trajectory(value: Any) -> list[dict[str, float]]:
    trajectory = fields.items("trajectory", value)
    for i, row in enumerate(trajectory):
        for name, entry in fields.mapping(f"trajectory[{i}]", row).items():
            if isinstance(entry, dict | list):
                fields.refuse(f"trajectory[{i}].{name}", entry, "a number")
    return trajectory
