"""Draws of a classifier as one table of class probabilities, whichever likelihood they came from."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from doxa.contracts import Likelihood

# E[y | x, w] [S, B, ·] -> probabilities [S, B, T, C] of C classes for each of a row's T labels.
ToProbabilities = Callable[[Tensor], Tensor]


def probability_function(likelihood: Likelihood, means: Tensor, y: Tensor) -> tuple[ToProbabilities, Tensor]:
    """How to read means [S, B, ·] as class probabilities, and the labels [B, T]; y as `likelihood.check` left it.

    Targets in the shape of the means are yes or no: two classes each. Otherwise the means have an axis of classes more.
    """
    labels = y.reshape(len(y), -1).long()
    if y.shape == means.shape[1:]:
        return _binary_probabilities, labels
    axis = getattr(likelihood, "class_axis", -1)
    return lambda means: _class_probabilities(means.movedim(axis, -1)), labels


def _binary_probabilities(means: Tensor) -> Tensor:
    flat = means.reshape(*means.shape[:2], -1)
    return torch.stack([1 - flat, flat], dim=-1)


def _class_probabilities(means: Tensor) -> Tensor:
    return means.reshape(*means.shape[:2], -1, means.shape[-1])
