"""The data's part of the free energy: the mean negative log-likelihood of a batch."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from doxa.contracts import Batch, Problem
from doxa.layout import LIKELIHOOD, call
from doxa.predict import precision


def nll(problem: Problem, leaves: Mapping[str, Tensor], buffers: Mapping[str, Tensor], batch: Batch) -> Tensor:
    """−(1/B) Σᵢ log p(yᵢ | net(xᵢ, w)) with the weights, and the likelihood's own parameters, among `leaves`."""
    weights = {k: v for k, v in leaves.items() if not k.startswith(LIKELIHOOD)}
    parameters = {k.removeprefix(LIKELIHOOD): v for k, v in leaves.items() if k.startswith(LIKELIHOOD)}
    with precision(problem.start.device, problem.autocast):
        output = call(problem.net, weights, buffers, batch.x)
    return -problem.likelihood.log_prob(output.to(problem.start.dtype), batch.y, parameters).mean()
