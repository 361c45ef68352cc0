"""Few digits to learn from, other ones for each seed: rows to learn, rows to choose by, and all of the test rows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from doxa.data import mnist
from doxa_replicate.contract import ReplicationOptions

CLASSES = 10
Rows = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Split:
    """One seed's rows: which of the pool are learned from, what is chosen by, and the class that is scarce, if any."""

    learn: Sequence[int]
    choose: Rows
    scarce: int | None = None


@dataclass(frozen=True)
class FewDigits:
    """Images [B, 784] in [0, 1] and labels: the pool that splits index, a split for each seed, and the test rows."""

    pool: Rows
    splits: Sequence[Split]
    test: Rows


def few_digits(
    options: ReplicationOptions, seeds: Sequence[int], per_class: int, choose_per_class: int, scarce_share: float = 1.0
) -> FewDigits:
    """So many rows a class, drawn anew for every seed; of class `seed` mod 10 only a share, where it is below 1."""
    x, y, x_test, y_test = _load(options.device or "cpu")
    test_rows = int(options.by_size(500, 10_000))
    labels = y.cpu().numpy()
    splits = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(labels))
        scarce = seed % CLASSES if scarce_share < 1 else None
        learn: list[int] = []
        choose: list[int] = []
        for label in range(CLASSES):
            share = scarce_share if label == scarce else 1.0
            of_class = order[labels[order] == label]
            learn_count, choose_count = (max(1, round(share * count)) for count in (per_class, choose_per_class))
            learn += of_class[:learn_count].tolist()
            choose += of_class[per_class : per_class + choose_count].tolist()
        splits.append(Split(sorted(learn), (x[choose], y[choose]), scarce))
    return FewDigits((x, y), splits, (x_test[:test_rows], y_test[:test_rows]))


@functools.lru_cache(maxsize=1)
def _load(device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dataset = mnist()
    x, x_test = (torch.as_tensor(images).flatten(1).to(device) for images in dataset.images())
    y, y_test = (torch.as_tensor(labels).to(device) for labels in (dataset.y_train, dataset.y_test))
    return x, y, x_test, y_test
