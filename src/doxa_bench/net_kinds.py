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


class NetKind(NamedTuple):
    """How a net is made, the shape of one of its inputs, and its name in a table."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    title: str


KINDS: dict[str, NetKind] = {
    "mlp1200": NetKind(lambda: nets.mlp(784, (1200, 1200), CLASSES), (784,), "784-1200-1200-10"),
    "mlp400": NetKind(lambda: nets.mlp(784, (400, 400), CLASSES), (784,), "784-400-400-10"),
    "lenet5": NetKind(nets.lenet5, (1, 28, 28), "LeNet-5"),
    "vgg": NetKind(vgg, (3, 32, 32), "VGG with BatchNorm"),
}


def new_net(kind: str, device: str = "cpu") -> nn.Module:
    """A net with the same weights every time."""
    torch.manual_seed(0)
    return KINDS[kind].make().to(device)


def random_rows(kind: str, rows: int = BATCH, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Inputs and labels without meaning."""
    torch.manual_seed(0)
    return torch.randn(rows, *KINDS[kind].shape).to(device), torch.randint(0, CLASSES, (rows,)).to(device)


def split_case(case: str) -> tuple[str, str]:
    """A case's net as a table has it, and the rest of its name."""
    kind, _, variant = case.partition(" ")
    return (KINDS[kind].title if kind in KINDS else kind), variant
