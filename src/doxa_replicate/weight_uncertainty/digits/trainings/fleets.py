"""Fleets as all nets of MNIST are trained: batch, likelihood and device, and how matrices are multiplied meanwhile."""

from __future__ import annotations

from typing import Any

import doxa
from doxa.engine.epochs import Watch
from doxa.predict.belief import Belief
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.digits.trainings.models import BATCH
from doxa_replicate.weight_uncertainty.digits.trainings.rows import Rows
from doxa_replicate.weight_uncertainty.matmul import matmul_precision, precise_watch, training_matmul


def train_fleet(
    options: ReplicationOptions,
    nets: Any,
    rows: Rows,
    *,
    watch: Watch | None = None,
    **how: Any,
) -> list[Belief]:
    """`doxa.fleet` with what all nets share; a watch predicts in full precision."""
    with matmul_precision(training_matmul(options)):
        return doxa.fleet(
            nets,
            rows,
            likelihood=doxa.likelihoods.categorical(),
            batch_size=BATCH,
            device=options.device,
            progress=options.progress,
            watch=precise_watch(watch),
            **how,
        )
