"""LEARNER: a way to a posterior, with gradients: a recipe of gradient, stepper and collector.

To add one: a file here and a line below.
"""

from collections.abc import Callable
from typing import Any

from doxa import registry
from doxa.learners.dropout import dropout as dropout
from doxa.learners.ema import ema as ema
from doxa.learners.ensemble import ensemble as ensemble
from doxa.learners.langevin import langevin as langevin
from doxa.learners.point import point as point
from doxa.learners.swa import swa as swa
from doxa.learners.variational import variational as variational

TABLE: dict[str, Callable[..., Any]] = registry.members(globals())
EXAMPLES = registry.examples(__name__, __path__)


def register(name: str, maker: Callable[..., Any]) -> None:
    """Make a learner of your own reachable by name, in settings and commands, as those of `TABLE` are."""
    registry.enter(TABLE, name, maker, reserved=("auto", "search"))
