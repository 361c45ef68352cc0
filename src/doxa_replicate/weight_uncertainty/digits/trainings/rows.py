"""MNIST as the document uses it: rows to learn from, rows to choose by, test rows, and test rows that were turned."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.data import mnist
from doxa_replicate.contract import ReplicationOptions

VALIDATION_ROWS = 10_000
ROTATION = 30.0  # degrees

Rows = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Digits:
    """Images [B, 784] in [0, 1] and labels [B]; `learn` and `choose` make up `train`."""

    train: Rows
    learn: Rows
    choose: Rows
    test: Rows


def load_digits(options: ReplicationOptions) -> Digits:
    return _load_digits(
        options.by_size(2000, 60_000),
        options.by_size(500, VALIDATION_ROWS),
        options.by_size(1000, 10_000),
        options.device or "cpu",
    )


@functools.lru_cache(maxsize=1)
def _load_digits(rows: int, validation_rows: int, test_rows: int, device: str) -> Digits:
    dataset = mnist()
    x, x_test = (torch.as_tensor(images).flatten(1) for images in dataset.images())
    y, y_test = torch.as_tensor(dataset.y_train), torch.as_tensor(dataset.y_test)
    x, y, x_test, y_test = (t.to(device) for t in (x[:rows], y[:rows], x_test[:test_rows], y_test[:test_rows]))
    learn_rows = rows - validation_rows
    return Digits((x, y), (x[:learn_rows], y[:learn_rows]), (x[learn_rows:], y[learn_rows:]), (x_test, y_test))


def rotate_images(x: Tensor, degrees: float = ROTATION) -> Tensor:
    """Images [B, 784] turned about their middle, by bilinear interpolation."""
    angle = math.radians(degrees)
    matrix = x.new_tensor([[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]])
    images = x.view(-1, 1, 28, 28)
    grid = F.affine_grid(matrix.expand(len(x), 2, 3), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False).flatten(1).clamp(0, 1)
