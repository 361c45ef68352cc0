"""MNIST as the document uses it: rows to learn from, rows to choose by, test rows, and test rows that were turned."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.data import mnist
from doxa_replicate.contract import Ask

VALIDATION = 10_000
TURNED = 30.0  # degrees

Rows = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Digits:
    """Images [B, 784] in [0, 1] and labels [B]; `learn` and `choose` make up `train`."""

    train: Rows
    learn: Rows
    choose: Rows
    test: Rows


def digits(ask: Ask) -> Digits:
    return _digits(ask.of(2000, 60_000), ask.of(500, VALIDATION), ask.of(1000, 10_000), ask.device or "cpu")


@functools.lru_cache(maxsize=1)
def _digits(rows: int, held_out: int, tested: int, device: str) -> Digits:
    found = mnist()
    x, x_test = (torch.as_tensor(part).flatten(1) for part in found.images())
    y, y_test = torch.as_tensor(found.y_train), torch.as_tensor(found.y_test)
    x, y, x_test, y_test = (t.to(device) for t in (x[:rows], y[:rows], x_test[:tested], y_test[:tested]))
    last = rows - held_out
    return Digits((x, y), (x[:last], y[:last]), (x[last:], y[last:]), (x_test, y_test))


def turned(x: Tensor, degrees: float = TURNED) -> Tensor:
    """Images [B, 784] turned about their middle, by bilinear interpolation."""
    angle = math.radians(degrees)
    matrix = x.new_tensor([[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]])
    images = x.view(-1, 1, 28, 28)
    grid = F.affine_grid(matrix.expand(len(x), 2, 3), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False).flatten(1).clamp(0, 1)
