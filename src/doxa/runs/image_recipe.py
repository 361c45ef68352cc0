"""What is assumed of images, of which there are too many to try settings on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from doxa.contracts import Moment, Schedule
from doxa.errors import require_whole
from doxa.kl_weights.geometric import Geometric
from doxa.optimisers.adam import Adam
from doxa.runs.learn import default_epochs
from doxa.runs.plan import Plan
from doxa.runs.training_data import TrainingData
from doxa.training.threads import ROWS

MANY_ROWS, WIDE_NET = 10_000, "mlp:400,400"
# Chosen on 10,000 rows of MNIST set aside: a scale of 0.04 that 20 epochs at this rate let grow to 0.075.
RECIPE = {"prior": "gaussian:1", "kl_weight": "geometric", "lr": "cosine:0.002"}
END_SCALE = 0.075


def assume_for_images(settings: Mapping[str, Any], training_data: TrainingData) -> dict[str, Any]:
    """Settings for images where a learner is not named: halving shares of the KL, unless the KL is weighed otherwise.

    Scales start where they end at 0.075 if the data do not hold them back: how far Adam lets them grow is known
    beforehand. With another optimiser nothing of this holds, and nothing of it is assumed.
    """
    if "learner" in settings or training_data.train[0].dim() != 4:
        return {}
    rows = len(training_data.train[1])
    assumed: dict[str, Any] = {"learner": "variational", "epochs": default_epochs(rows, settings.get("batch_size"))}
    stepper = Plan.from_settings({**settings, **assumed}).build_optimiser() or Adam()
    if settings.get("kl_weight", RECIPE["kl_weight"]) == RECIPE["kl_weight"] and isinstance(stepper, Adam):
        assumed |= RECIPE | ({"net": WIDE_NET} if rows >= MANY_ROWS else {})
        plan = Plan.from_settings({**assumed, **settings})
        batches = math.ceil(rows / require_whole("batch_size", plan.batch_size or ROWS))
        growth = Geometric().growth(batches, stepper.betas[1])
        scale = start_scale(plan.build_rate(), batches, require_whole("epochs", plan.epochs), growth)
        assumed["posterior"] = f"mean_field:scale={scale:.2g}"
    return {name: value for name, value in assumed.items() if name not in settings}


def start_scale(rate: Schedule, batches: int, epochs: int, growth: float, end: float = END_SCALE) -> float:
    """The scale that halving shares of the KL let grow to `end`: softplus(ρ_end − growth · Σ rates of the epochs)."""
    rates = sum(rate(Moment(k * batches, epochs * batches, 0, batches)) for k in range(epochs))
    rho = math.log(math.expm1(end)) - growth * rates
    return math.log1p(math.exp(max(rho, math.log(1e-4))))  # however long the run, there is noise at its start
