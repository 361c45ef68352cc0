"""What a metric refuses, said in words."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.errors import BadInput

SUM_TOLERANCE = 1e-3  # float32 softmax over thousands of classes sums to one within this; logits do not


def require_probabilities(p: Tensor, y: Tensor) -> Tensor:
    """Refuse all but probabilities p [B, C] and labels y [B]; the labels come back as int64."""
    if p.dim() != 2 or p.shape[1] < 2:
        raise BadInput(
            f"p has shape {tuple(p.shape)}; it must be [rows, classes] with two classes or more: "
            "average over draws first, and give a single probability q as [1 − q, q]"
        )
    if y.dim() != 1 or len(y) != len(p):
        raise BadInput(
            f"y has shape {tuple(y.shape)}; with p of shape {tuple(p.shape)} it must be ({len(p)},): one label a row"
        )
    require_not_empty("p", p)
    if y.dtype.is_floating_point or y.dtype.is_complex:
        raise BadInput(f"y is {y.dtype}; labels must be whole numbers: y.long()")
    sums = p.sum(1)
    # NaN fails every comparison, so two passes over p clear the usual case.
    if not (bool(((sums - 1).abs() <= SUM_TOLERANCE).all()) and float(p.min()) >= 0):
        require_no_nan("p", p)
        worst = int((sums - 1).abs().argmax())
        raise BadInput(
            f"the rows of p must be probabilities that sum to one; row {worst} sums to "
            f"{float(sums[worst]):g} and the smallest entry is {float(p.min()):g}: give "
            "logits.softmax(-1), not logits"
        )
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= p.shape[1]:
        raise BadInput(
            f"labels run from {low} to {high}, but p has {p.shape[1]} classes: they must be 0 … {p.shape[1] - 1}"
        )
    return y.long()


def require_not_empty(name: str, values: Tensor) -> None:
    """Refuse an empty tensor."""
    if values.numel() == 0:
        raise BadInput(f"{name} has shape {tuple(values.shape)} and so nothing to judge; give at least one row")


def require_no_nan(name: str, values: Tensor) -> None:
    """Refuse NaN."""
    bad = values.isnan()
    if bool(bad.any()):
        where = bad.nonzero()[0].tolist()
        raise BadInput(
            f"{name} holds {int(bad.sum())} values that are NaN, the first at {where}; drop those rows, or "
            "look for what made them: usually a diverged fit"
        )


def require_same_shape(**tensors: Tensor) -> None:
    """Refuse tensors that differ in shape, are empty or hold NaN; named as the caller names them."""
    (first, reference), *remaining = tensors.items()
    for name, values in remaining:
        if values.shape != reference.shape:
            raise BadInput(
                f"{name} has shape {tuple(values.shape)} but {first} has {tuple(reference.shape)}; they must "
                "be alike, entry for entry"
            )
    for name, values in tensors.items():
        require_not_empty(name, values)
        require_no_nan(name, values)


def require_log_prob(log_p: Tensor) -> None:
    """Refuse all but log-probabilities of draws and rows [S, B]; −∞ is one."""
    if log_p.dim() != 2:
        raise BadInput(f"log_p has shape {tuple(log_p.shape)}; it must be [draws, rows], as Draws.log_prob gives it")
    require_not_empty("log_p", log_p)
    require_no_nan("log_p", log_p)
    if bool((log_p == torch.inf).any()):
        raise BadInput("log_p holds +∞, which is no log-probability: look for a noise scale that went to zero")


def require_level(level: float) -> None:
    """Refuse a level of intervals that no interval has."""
    if not 0 < level < 1:
        raise BadInput(f"level must lie strictly between 0 and 1, got {level}; 0.9 asks for 90 % intervals")


def require_bins(bins: int) -> None:
    """Refuse fewer bins than one."""
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise BadInput(f"bins must be a whole number of at least 1; got {bins!r}")
