"""Doxa: weight uncertainty for PyTorch.

Take any architecture, put a prior on its weights, choose a posterior family, choose how the noise enters, learn it, and
judge what came out.
"""

from importlib import import_module
from typing import Any

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
from doxa.contracts import Estimate
from doxa.errors import BadInput, BrokenFile, Diverged, DoxaError, Interrupted
from doxa.judge.verdict import judge
from doxa.predict.belief import Belief, load
from doxa.predict.draws import Draws
from doxa.training.fit import fit
from doxa.training.fleet import fleet, predict
from doxa.version import VERSION

__version__ = VERSION


def __getattr__(name: str) -> Any:
    """`doxa.storage.sample_store` by its first address."""
    if name == "sample_store":
        return import_module("doxa.storage.sample_store")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
