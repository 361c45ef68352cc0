"""MNIST for the questions that need more than rows of noise."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.data import mnist

VALIDATION = 10_000

LabeledRows = tuple[Tensor, Tensor]


def mnist_splits(device: str = "cpu") -> tuple[LabeledRows, LabeledRows, LabeledRows]:
    """Rows to learn from, rows to choose by, and the test set."""
    dataset = mnist()
    x, x_test = (torch.as_tensor(part).flatten(1).to(device) for part in dataset.images())
    y, y_test = (torch.as_tensor(part).to(device) for part in (dataset.y_train, dataset.y_test))
    return (x[VALIDATION:], y[VALIDATION:]), (x[:VALIDATION], y[:VALIDATION]), (x_test, y_test)
