"""KL WEIGHT: how much of KL/N each minibatch pays. To add one: a file here and a line in TABLE.

The objective of a minibatch, per example, is mean NLL + weight · KL/N; a weight of 1 is the free energy.
"""

from collections.abc import Callable

from doxa.contracts import Schedule
from doxa.kl_weights.annealed import Annealed as annealed
from doxa.kl_weights.geometric import Geometric as geometric
from doxa.kl_weights.tempered import Tempered as tempered
from doxa.kl_weights.uniform import Uniform as uniform

TABLE: dict[str, Callable[..., Schedule]] = {
    "uniform": uniform,
    "geometric": geometric,
    "annealed": annealed,
    "tempered": tempered,
}

__all__ = ["TABLE", "annealed", "geometric", "tempered", "uniform"]
