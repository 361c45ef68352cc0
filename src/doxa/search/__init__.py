"""SEARCH: learning without gradients, by variational optimisation."""

from doxa.search import engines, episodes, functions, shaping
from doxa.search.ask_tell import Search, Settings
from doxa.search.coordinates import log_scale, variance
from doxa.search.episodes.learn import policy
from doxa.search.episodes.result import Policy
from doxa.search.gaussian import Gaussian, Slopes, scores
from doxa.search.gradients import Natural as natural_within
from doxa.search.gradients import natural, plain
from doxa.search.learner import VariationalOptimisation as learner
from doxa.search.local import Local as local
from doxa.search.low_rank import LowRank as low_rank
from doxa.search.minimise import Found, maximise, minimise
from doxa.search.objectives import f1, zero_one
from doxa.search.weight_space import WeightSpace as weight_space

__all__ = [
    "Found",
    "Gaussian",
    "Policy",
    "Search",
    "Settings",
    "Slopes",
    "engines",
    "episodes",
    "f1",
    "functions",
    "learner",
    "local",
    "log_scale",
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
