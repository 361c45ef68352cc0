"""How rows [K, n] are walked through."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from doxa.kernels import cuda, stride

# Without kernels, long rows on a CPU are worked through in parts of which a few fit into its cache.
CHUNK = 1 << 17


def same_stride(*rows: Tensor | None) -> bool:
    """Whether all have one distance from row to row."""
    return len({stride(r) for r in rows if r is not None and len(r) > 1}) < 2


def triton_grid(rows: Tensor) -> tuple[int, int]:
    """The programs that a Triton kernel works on rows with."""
    return -(-rows.shape[1] // cuda.WIDE), len(rows)


def column_chunks(n: int, device: torch.device) -> Iterator[slice]:
    """The columns in stretches of at most PART on the CPU, all at once elsewhere."""
    size = CHUNK if device.type == "cpu" else max(n, 1)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def empty_rows(like: Tensor) -> Tensor:
    """Rows of the same shape, dense, not filled."""
    return torch.empty_like(like, memory_format=torch.contiguous_format)
