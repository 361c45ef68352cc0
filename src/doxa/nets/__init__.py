"""ARCHITECTURE: plain torch modules, unaware of beliefs. To add one: a file here and a line in TABLE."""

from collections.abc import Callable

from torch import nn

from doxa.nets.lenet5 import lenet5
from doxa.nets.mlp import mlp
from doxa.nets.rescaled import Rescaled as rescaled

TABLE: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "lenet5": lenet5}

__all__ = ["TABLE", "lenet5", "mlp", "rescaled"]
