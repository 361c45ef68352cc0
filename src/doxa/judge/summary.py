"""The two numbers that a curve is drawn of."""

from __future__ import annotations

from torch import Tensor

from doxa.judge.metrics.labels import probability_function
from doxa.judge.metrics.predictive_density import lppd
from doxa.judge.metrics.regression import rmse
from doxa.judge.metrics.scores import error
from doxa.likelihoods import over_draws
from doxa.predict.draws import Draws


def skill_and_nll(draws: Draws, y: Tensor) -> dict[str, float]:
    """The error (classification) or rmse (regression) of the averaged prediction, and its nll = −lppd a row."""
    y = draws.likelihood.check(draws.outputs[0], y)
    nll = -float(lppd(draws.log_prob(y), draws.weights))
    means = draws.means
    if not getattr(draws.likelihood, "discrete", False):
        return {"rmse": float(rmse(over_draws.mean(means, draws.weights), y)), "nll": nll}
    to_probabilities, labels = probability_function(draws.likelihood, means, y)
    p = over_draws.mean(to_probabilities(means), draws.weights).flatten(0, 1)
    return {"error": float(error(p, labels.flatten())), "nll": nll}
