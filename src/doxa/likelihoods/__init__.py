"""LIKELIHOOD: what the net's output says of the data. To add one: a file here and a line below."""

from collections.abc import Callable

from doxa import registry
from doxa.contracts import Likelihood
from doxa.likelihoods.bernoulli import bernoulli as bernoulli
from doxa.likelihoods.categorical import categorical as categorical
from doxa.likelihoods.gaussian import gaussian as gaussian
from doxa.likelihoods.gaussian import gaussian_learned as gaussian_learned
from doxa.likelihoods.gaussian import gaussian_per_input as gaussian_per_input

TABLE: dict[str, Callable[..., Likelihood]] = registry.members(globals())
EXAMPLES = registry.examples(__name__, __path__)


def register(name: str, maker: Callable[..., Likelihood]) -> None:
    """Make a likelihood of your own reachable by name, in settings, commands and files, as those of `TABLE` are."""
    registry.enter(TABLE, name, maker)
