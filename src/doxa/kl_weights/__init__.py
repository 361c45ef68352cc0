"""KL WEIGHT: how much of KL/N each minibatch pays. To add one: a file here and a line below.

The objective of a minibatch, per example, is mean NLL + weight · KL/N; a weight of 1 is the free energy.
"""

from collections.abc import Callable

from doxa import registry
from doxa.contracts import Schedule
from doxa.kl_weights.annealed import annealed as annealed
from doxa.kl_weights.geometric import geometric as geometric
from doxa.kl_weights.tempered import tempered as tempered
from doxa.kl_weights.uniform import uniform as uniform

TABLE: dict[str, Callable[..., Schedule]] = registry.members(globals())
EXAMPLES = registry.examples(__name__, __path__)


def register(name: str, maker: Callable[..., Schedule]) -> None:
    """Make a KL weight of your own reachable by name, in settings and commands, as those of `TABLE` are."""
    registry.enter(TABLE, name, maker)
