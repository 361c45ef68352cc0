"""LeNet-5."""

from __future__ import annotations

from torch import nn


def lenet5(channels: int = 1, classes: int = 10, size: int = 28) -> nn.Sequential:
    """Three convolutions and two dense layers, in today's form: ReLU, max-pooling, images kept at their size.

    conv 6 → pool → conv 16 → pool → conv 120 → dense 84 → dense `classes`;  kernels 5×5 'same', pools 2×2

    x [B, channels, size, size] → [B, classes].
    LeCun, Bottou, Bengio & Haffner (1998), Gradient-based learning applied to document recognition.
    """
    if channels < 1 or classes < 1:
        raise ValueError(f"lenet5 needs at least one channel and one class; got {channels} and {classes}")
    if size < 4:
        raise ValueError(f"lenet5 halves its images twice, so they must be at least 4 pixels wide; got {size}")
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding="same"),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5, padding="same"),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 120, 5, padding="same"),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(120 * (size // 4) ** 2, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )
