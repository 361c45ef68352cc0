"""The two numbers that a curve is drawn of."""

from __future__ import annotations

from torch import Tensor

from doxa import over_draws
from doxa.draws import Draws
from doxa.judge.labels import reading
from doxa.judge.predictive_density import lppd
from doxa.judge.regression import rmse
from doxa.judge.scores import error


def summary(draws: Draws, y: Tensor) -> dict[str, float]:
    """The error (classification) or rmse (regression) of the averaged prediction, and its nll = −lppd a row."""
    y = draws.likelihood.check(draws.outputs[0], y)
    nll = -float(lppd(draws.log_prob(y), draws.weights))
    means = draws.means
    if not getattr(draws.likelihood, "discrete", False):
        return {"rmse": float(rmse(over_draws.mean(means, draws.weights), y)), "nll": nll}
    read, labels = reading(draws.likelihood, means, y)
    p = over_draws.mean(read(means), draws.weights).flatten(0, 1)
    return {"error": float(error(p, labels.flatten())), "nll": nll}
