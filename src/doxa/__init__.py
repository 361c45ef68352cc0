"""Doxa: weight uncertainty for PyTorch.

Take any architecture, put a prior on its weights, choose a posterior family, choose how the noise enters, learn it, and
judge what came out.
"""

from typing import TYPE_CHECKING

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
    references,
    search,
)
from doxa.contracts import Estimate
from doxa.errors import BadInput, BrokenFile, Diverged, DoxaError, Interrupted
from doxa.judge.free_energy import FreeEnergy, elbo, free_energy
from doxa.judge.verdict import judge
from doxa.moved.modules import find_moved_modules
from doxa.moved.names import renamed
from doxa.predict.belief import Belief, load
from doxa.predict.draws import Draws
from doxa.training.fit import fit
from doxa.training.fleet import fleet, predict
from doxa.version import VERSION

__version__ = VERSION

find_moved_modules()

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(__name__, {"options": "doxa.training.options", "sample_store": "doxa.storage.sample_store"})

__all__ = [
    "BadInput",
    "Belief",
    "BrokenFile",
    "Diverged",
    "DoxaError",
    "Draws",
    "Estimate",
    "FreeEnergy",
    "Interrupted",
    "collectors",
    "data",
    "elbo",
    "fit",
    "fleet",
    "free_energy",
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
    "references",
    "search",
]
