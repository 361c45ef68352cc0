"""How many threads work is shared by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

ROWS = 128  # of a step, unless said otherwise
SMALL = 1 << 24  # products of a weight and a row of a step


@contextmanager
def limit_threads(net: nn.Module, rows: int = ROWS) -> Iterator[None]:
    """One thread where a step of so many rows is too small to share, as many as there are otherwise.

    Waiting for each other costs small nets more than sharing gains them, and twenty times as much on a busy machine.
    """
    before = torch.get_num_threads()
    if rows * sum(p.numel() for p in net.parameters()) < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
