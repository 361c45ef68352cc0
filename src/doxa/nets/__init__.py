"""ARCHITECTURE: plain torch modules, unaware of beliefs. To add one: a file here and a line in TABLE."""

from collections.abc import Callable

from torch import nn

from doxa import registry
from doxa.nets.lenet5 import lenet5
from doxa.nets.mlp import mlp
from doxa.nets.rescaled import Rescaled as rescaled

TABLE: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "lenet5": lenet5}


def register(name: str, maker: Callable[..., nn.Module]) -> None:
    """Make a net of your own reachable by name, in settings and commands, as those of `TABLE` are.

    `name:3,wide=true` is `maker(shape, outputs, 3, wide=True)`: the shape of one row, and the length of the output.
    """
    registry.enter(TABLE, name, maker)


__all__ = ["TABLE", "lenet5", "mlp", "register", "rescaled"]
