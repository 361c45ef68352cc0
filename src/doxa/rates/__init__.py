"""RATE: the learning rate at each moment of a run. To add one: a file here and a line below."""

from collections.abc import Callable

from doxa import registry
from doxa.contracts import Schedule
from doxa.rates.constant import constant as constant
from doxa.rates.cosine import cosine as cosine
from doxa.rates.cyclical import cyclical as cyclical
from doxa.rates.polynomial import polynomial as polynomial
from doxa.rates.step import step as step

TABLE: dict[str, Callable[..., Schedule]] = registry.members(globals())
EXAMPLES = registry.examples(__name__, __path__)


def register(name: str, maker: Callable[..., Schedule]) -> None:
    """Make a learning rate of your own reachable by name, in settings and commands, as those of `TABLE` are."""
    registry.enter(TABLE, name, maker)
