"""The kinds of net that are measured, with rows of noise of their inputs' shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from doxa import nets
from doxa_bench.vgg import vgg

BATCH = 128
ROWS = 60_000  # over which the KL is divided
CLASSES = 10


class Kind(NamedTuple):
    """How a net is made, the shape of one of its inputs, and its name in a table."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    shown: str


KINDS: dict[str, Kind] = {
    "mlp1200": Kind(lambda: nets.mlp(784, (1200, 1200), CLASSES), (784,), "784-1200-1200-10"),
    "mlp400": Kind(lambda: nets.mlp(784, (400, 400), CLASSES), (784,), "784-400-400-10"),
    "lenet5": Kind(nets.lenet5, (1, 28, 28), "LeNet-5"),
    "vgg": Kind(vgg, (3, 32, 32), "VGG with BatchNorm"),
}


def new(kind: str, device: str = "cpu") -> nn.Module:
    """A net with the same weights every time."""
    torch.manual_seed(0)
    return KINDS[kind].make().to(device)


def noise_rows(kind: str, rows: int = BATCH, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Inputs and labels without meaning."""
    torch.manual_seed(0)
    return torch.randn(rows, *KINDS[kind].shape).to(device), torch.randint(0, CLASSES, (rows,)).to(device)


def shown(case: str) -> tuple[str, str]:
    """A case's net as a table has it, and the rest of its name."""
    kind, _, rest = case.partition(" ")
    return (KINDS[kind].shown if kind in KINDS else kind), rest
