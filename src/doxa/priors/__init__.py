"""PRIOR: what is believed of a weight before any data. To add one: a file here and a line below."""

from collections.abc import Callable

from doxa import registry
from doxa.contracts import Prior
from doxa.priors.gaussian import gaussian as gaussian
from doxa.priors.laplace import laplace as laplace
from doxa.priors.scale_mixture import scale_mixture as scale_mixture
from doxa.priors.student_t import student_t as student_t

TABLE: dict[str, Callable[..., Prior]] = registry.members(globals())
EXAMPLES = registry.examples(__name__, __path__)


def register(name: str, maker: Callable[..., Prior]) -> None:
    """Make a prior of your own reachable by name, in settings, commands and files, as those of `TABLE` are."""
    registry.enter(TABLE, name, maker)
