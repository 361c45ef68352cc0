"""ENGINE: one loop for everything that learns, of a gradient, a stepper, a collector and a source of batches.

The seams at which parts of your own can stand in for Doxa's.
"""

from doxa.engine.context import StepContext
from doxa.engine.contracts import (
    Beliefs,
    Collector,
    Gradient,
    Group,
    Journey,
    Learner,
    Parameter,
    Recipe,
    Source,
    State,
    Stepper,
)
from doxa.engine.recipes import GaussianSlopes, GradientRows, materialised

__all__ = [
    "Beliefs",
    "Collector",
    "GaussianSlopes",
    "Gradient",
    "GradientRows",
    "Group",
    "Journey",
    "Learner",
    "Parameter",
    "Recipe",
    "Source",
    "State",
    "StepContext",
    "Stepper",
    "materialised",
]
