"""OPTIMISER: how gradients become steps, with a rate for each net. To add one: a file here and a line below."""

from collections.abc import Callable
from typing import Any

from doxa import registry
from doxa.optimisers.adam import adam as adam
from doxa.optimisers.langevin import langevin as langevin
from doxa.optimisers.sgd import sgd as sgd
from doxa_settings.names import TORCH_OPTIMISERS

TABLE: dict[str, Callable[..., Any]] = registry.members(globals())
EXAMPLES = registry.examples(__name__, __path__)


def register(name: str, maker: Callable[..., Any]) -> None:
    """Make an optimiser of your own reachable by name, in settings and commands, as `adam` and `sgd` are.

    Its maker gives settings with `start`, as those of `TABLE` do, or is a class of torch's optimisers.
    """
    registry.enter(TABLE, name, maker, reserved=TORCH_OPTIMISERS)
