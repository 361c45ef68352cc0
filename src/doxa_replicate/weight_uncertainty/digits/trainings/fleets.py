"""Fleets as all nets of MNIST are trained: batch, likelihood and device, and how matrices are multiplied meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

import doxa
from doxa.engine.epochs import Watch
from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.digits.trainings.models import BATCH
from doxa_replicate.weight_uncertainty.digits.trainings.rows import Rows


def training_matmul(options: ReplicationOptions) -> str:
    """How precisely products are worked out in training: on a GPU with factors of ten bits, which takes a third less.

    All else is in single precision, and so are predictions; the authors' version of torch did the same where it could.
    """
    return "high" if (options.device or "").startswith("cuda") else "highest"


def train_fleet(
    options: ReplicationOptions,
    nets: Any,
    rows: Rows,
    *,
    watch: Watch | None = None,
    **how: Any,
) -> list[Belief]:
    """`doxa.fleet` with what all nets share; a watch predicts in full precision."""
    if watch is not None:
        watch = partial(_watch_precisely, watch)
    with matmul_precision(training_matmul(options)):
        return doxa.fleet(
            nets,
            rows,
            likelihood=doxa.likelihoods.categorical(),
            batch_size=BATCH,
            device=options.device,
            progress=options.progress,
            watch=watch,
            **how,
        )


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Products of matrices in single precision are worked out so meanwhile, and as before afterwards."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _watch_precisely(watch: Watch, beliefs: list[Belief]) -> Sequence[Mapping[str, float]]:
    with matmul_precision("highest"):
        return watch(beliefs)
