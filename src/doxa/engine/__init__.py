"""ENGINE: one loop for everything that learns, of a gradient, a stepper, a collector and a source of batches.

The seams at which parts of your own can stand in for Doxa's.
"""

from typing import TYPE_CHECKING

from doxa.engine.context import StepContext
from doxa.engine.contracts import (
    Beliefs,
    Collector,
    CollectorSetup,
    Gradient,
    Group,
    Learner,
    Parameter,
    Recipe,
    Source,
    State,
    Stepper,
)
from doxa.engine.recipes import GaussianSlopes, GradientRows, materialised
from doxa.moved.names import renamed

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(__name__, {"Journey": "CollectorSetup"})

__all__ = [
    "Beliefs",
    "Collector",
    "CollectorSetup",
    "GaussianSlopes",
    "Gradient",
    "GradientRows",
    "Group",
    "Learner",
    "Parameter",
    "Recipe",
    "Source",
    "State",
    "StepContext",
    "Stepper",
    "materialised",
]
