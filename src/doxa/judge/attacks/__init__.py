"""ATTACK: a small change of the inputs that misleads a belief. To add one: a file here and a line below."""

from collections.abc import Callable

from torch import Tensor

from doxa import registry
from doxa.judge.attacks.fgsm import fgsm as fgsm

TABLE: dict[str, Callable[..., Tensor]] = registry.members(globals())
EXAMPLES = {name: (attack,) for name, attack in TABLE.items()}


def register(name: str, attack: Callable[..., Tensor]) -> None:
    """Make an attack of your own reachable by name, by `doxa attack --attack`, as those of `TABLE` are."""
    registry.enter(TABLE, name, attack)
