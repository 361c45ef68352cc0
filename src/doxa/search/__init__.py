"""SEARCH: learning without gradients, by variational optimisation."""

from typing import TYPE_CHECKING

from doxa.moved.names import renamed
from doxa.search import engines, episodes, functions, shaping
from doxa.search.ask_tell import Search
from doxa.search.distribution.coordinates import log_scale, log_variance, variance
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes, scores
from doxa.search.distribution.gradients import Natural as natural_within
from doxa.search.distribution.gradients import natural, plain
from doxa.search.episodes.learn import policy
from doxa.search.episodes.result import Policy, load_policy
from doxa.search.learner import VariationalOptimisation as learner
from doxa.search.minimise import SearchResult, maximise, minimise
from doxa.search.objectives import f1, zero_one
from doxa.search.perturbations.local import Local as local
from doxa.search.perturbations.low_rank import LowRank as low_rank
from doxa.search.perturbations.weight_space import WeightSpace as weight_space
from doxa.search.settings import Settings

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(
        __name__,
        {
            "Found": "SearchResult",
            "Gaussian": "SearchDistribution",
            "Slopes": "SearchSlopes",
        },
    )

__all__ = [
    "Policy",
    "Search",
    "SearchDistribution",
    "SearchResult",
    "SearchSlopes",
    "Settings",
    "engines",
    "episodes",
    "f1",
    "functions",
    "learner",
    "load_policy",
    "local",
    "log_scale",
    "log_variance",
    "low_rank",
    "maximise",
    "minimise",
    "natural",
    "natural_within",
    "plain",
    "policy",
    "scores",
    "shaping",
    "variance",
    "weight_space",
    "zero_one",
]
