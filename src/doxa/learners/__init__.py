"""LEARNER: a way to a posterior, with gradients: a recipe of gradient, stepper and collector.

To add one: a file here and a line in TABLE.
"""

from collections.abc import Callable
from typing import Any

from doxa.learners.dropout import Dropout as dropout
from doxa.learners.ema import Ema as ema
from doxa.learners.ensemble import Ensemble as ensemble
from doxa.learners.langevin import Langevin as langevin
from doxa.learners.point import Point as point
from doxa.learners.swa import Swa as swa
from doxa.learners.variational import Variational as variational

TABLE: dict[str, Callable[..., Any]] = {
    "point": point,
    "dropout": dropout,
    "variational": variational,
    "ensemble": ensemble,
    "langevin": langevin,
    "swa": swa,
    "ema": ema,
}

__all__ = ["TABLE", "dropout", "ema", "ensemble", "langevin", "point", "swa", "variational"]
