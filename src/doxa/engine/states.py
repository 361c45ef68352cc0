"""States put back to where they were taken from."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from doxa.errors import BrokenFile


@torch.no_grad()
def restore(targets: Mapping[str, Tensor], tensors: Mapping[str, Tensor], prefix: str = "") -> None:
    """Copy tensors back, in place."""
    for name, tensor in targets.items():
        if prefix + name not in tensors:
            raise BrokenFile(f"the checkpoint has no {name!r}: it was written by another learner or optimiser")
        saved = tensors[prefix + name]
        if (saved.shape, saved.dtype) != (tensor.shape, tensor.dtype):
            raise BrokenFile(
                f"the checkpoint's {name!r} is {saved.dtype} of shape {tuple(saved.shape)}, not {tensor.dtype} of "
                f"shape {tuple(tensor.shape)}: it was written for another net, learner or optimiser"
            )
        tensor.copy_(saved)


def select_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those of one part, by its own names."""
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
