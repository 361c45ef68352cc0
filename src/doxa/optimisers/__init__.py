"""OPTIMISER: how gradients become steps, with a rate for each net. To add one: a file here and a line in TABLE."""

from collections.abc import Callable
from typing import Any

from doxa.optimisers.adam import Adam as adam
from doxa.optimisers.langevin import Langevin as langevin
from doxa.optimisers.sgd import Sgd as sgd

TABLE: dict[str, Callable[..., Any]] = {"adam": adam, "sgd": sgd, "langevin": langevin}

__all__ = ["TABLE", "adam", "langevin", "sgd"]
