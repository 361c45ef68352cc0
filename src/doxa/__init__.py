"""Doxa: weight uncertainty for PyTorch.

Take any architecture, put a prior on its weights, choose a posterior family, choose how the noise enters, learn it, and
judge what came out.
"""

from doxa import (
    collectors,
    data,
    kl_weights,
    learners,
    likelihoods,
    nets,
    noise,
    optimisers,
    posteriors,
    priors,
    rates,
    search,
)
from doxa.belief import Belief, load
from doxa.contracts import Estimate
from doxa.draws import Draws
from doxa.errors import BadInput, BrokenFile, Diverged, DoxaError, Interrupted
from doxa.fit import fit
from doxa.fleet import fleet, predict
from doxa.judge.verdict import judge
from doxa.version import VERSION

__version__ = VERSION

__all__ = [
    "BadInput",
    "Belief",
    "BrokenFile",
    "Diverged",
    "DoxaError",
    "Draws",
    "Estimate",
    "Interrupted",
    "collectors",
    "data",
    "fit",
    "fleet",
    "judge",
    "kl_weights",
    "learners",
    "likelihoods",
    "load",
    "nets",
    "noise",
    "optimisers",
    "posteriors",
    "predict",
    "priors",
    "rates",
    "search",
]
