"""MNIST for the questions that need more than rows of noise."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.data import mnist

VALIDATION = 10_000

Rows = tuple[Tensor, Tensor]


def digits(device: str = "cpu") -> tuple[Rows, Rows, Rows]:
    """Rows to learn from, rows to choose by, and the test set."""
    found = mnist()
    x, x_test = (torch.as_tensor(part).flatten(1).to(device) for part in found.images())
    y, y_test = (torch.as_tensor(part).to(device) for part in (found.y_train, found.y_test))
    return (x[VALIDATION:], y[VALIDATION:]), (x[:VALIDATION], y[:VALIDATION]), (x_test, y_test)
