"""LIKELIHOOD: what the net's output says of the data. To add one: a file here and a line in TABLE."""

from doxa.likelihoods.bernoulli import Bernoulli as bernoulli
from doxa.likelihoods.categorical import Categorical as categorical
from doxa.likelihoods.gaussian import Gaussian as gaussian
from doxa.likelihoods.gaussian import GaussianLearned as gaussian_learned
from doxa.likelihoods.gaussian import GaussianPerInput as gaussian_per_input

TABLE = {
    "categorical": categorical,
    "bernoulli": bernoulli,
    "gaussian": gaussian,
    "gaussian_learned": gaussian_learned,
    "gaussian_per_input": gaussian_per_input,
}

__all__ = ["TABLE", "bernoulli", "categorical", "gaussian", "gaussian_learned", "gaussian_per_input"]
