"""The multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import nn


def mlp(
    inputs: int,
    hidden: Sequence[int] = (400, 400),
    outputs: int = 10,
    activation: Callable[[], nn.Module] = nn.ReLU,
    batch_norm: bool = False,
) -> nn.Sequential:
    """Linear layers with an activation between them.

    h_0 = x,  h_l = activation(W_l h_{l−1} + b_l),  output = W h_L + b

    x [B, ...] with `inputs` numbers a row, flattened first → [B, outputs]. Nothing `hidden`: a linear model.
    With `batch_norm`, W_l h_{l−1} is normalised before it is activated (Ioffe & Szegedy 2015).
    Rumelhart, Hinton & Williams (1986), Learning representations by back-propagating errors.
    """
    widths = (inputs, *hidden, outputs)
    if any(width < 1 for width in widths):
        raise ValueError(f"every layer of an mlp needs at least one unit; got {' - '.join(map(str, widths))}")
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths[:-1]):
        # Normalising takes a bias away again: it would be a weight of no effect, one more thing to doubt.
        layers.append(nn.Linear(before, after, bias=not batch_norm))
        if batch_norm:
            layers.append(nn.BatchNorm1d(after))
        layers.append(activation())
    return nn.Sequential(*layers, nn.Linear(widths[-2], outputs))
