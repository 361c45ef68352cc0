"""COLLECTOR: what is kept of the way that parameters go. To add one: a file here and a line below."""

from collections.abc import Callable
from typing import Any

from doxa import registry
from doxa.collectors.average import average as average
from doxa.collectors.chain import samples as samples
from doxa.collectors.last import last as last
from doxa.collectors.moving_average import moving_average as moving_average

TABLE: dict[str, Callable[..., Any]] = registry.members(globals())
EXAMPLES = registry.examples(__name__, __path__)


def register(name: str, maker: Callable[..., Any]) -> None:
    """Give a collector of your own a name in `TABLE`, for Python: no setting asks for a collector by words."""
    registry.enter(TABLE, name, maker)
