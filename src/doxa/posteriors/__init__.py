"""POSTERIOR: what is believed of the weights after the data. To add one: a file here and a line below."""

from collections.abc import Callable

from torch import Tensor

from doxa import registry
from doxa.contracts import Posterior
from doxa.posteriors.delta import delta as delta
from doxa.posteriors.dropout import dropout as dropout
from doxa.posteriors.mean_field import MeanField as MeanField
from doxa.posteriors.mean_field import mean_field as mean_field
from doxa.posteriors.mixture import mixture as mixture
from doxa.posteriors.particles import particles as particles
from doxa.posteriors.samples import samples as samples
from doxa.weights.layout import Layout
from doxa.weights.probe import Uses

# `mean_field` is how one starts; what is learned, saved and loaded is a `MeanField`.
TABLE: dict[str, Callable[..., Posterior]] = {**registry.members(globals()), "mean_field": MeanField}
EXAMPLES: dict[str, Callable[[Layout, Tensor, Uses], Posterior]] = {
    **registry.examples(__name__, __path__),
    "mixture": lambda layout, start, uses: mixture(
        tuple(mean_field(rho=(-4.0, -1.0), mean=(-0.3, 0.3)).start(layout, start, (k,)) for k in range(3))
    ),
}


def register(name: str, maker: Callable[..., Posterior]) -> None:
    """Make a posterior of your own reachable by name, in files, as those of `TABLE` are."""
    registry.enter(TABLE, name, maker)
