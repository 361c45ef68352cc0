"""How hard the data hold a belief's scales back, as a temperature: the KL pulls them to the prior's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from doxa.engine.contracts import Learner
from doxa.posteriors import MeanField
from doxa.predict.belief import Belief
from doxa.priors.gaussian import Gaussian
from doxa_replicate.weight_uncertainty.local_reparameterisation.held_still import FrozenBelief

GROUPS, COPIES, BATCH = 10, 8, 500


def resistance(belief: Belief, learner: Learner, data: tuple[Tensor, Tensor], evaluations: int) -> dict[str, Any]:
    """The temperature at which each group of weights would rest, weights grouped by their signal-to-noise.

    T = Σ ∂NLL/∂ρ / −Σ ∂KL/∂ρ,  NLL summed over the rows

    Where a free energy NLL + T·KL is lowest its scales rest, and T is its temperature: one for the true free energy.
    Scales that still grow are at a lower one than they would rest at, and where the data say nothing T is zero.
    """
    posterior = belief.posterior
    assert isinstance(posterior, MeanField)
    random = belief.layout.random
    pull = _kl_slope(posterior, belief, random)
    order = (posterior.mean[:random].abs() / posterior.scale[:random]).argsort()
    groups = order.tensor_split(GROUPS)
    push = _nll_slopes(belief, learner, data, evaluations)
    return {
        "temperature": [float(push[:, group].sum() / (COPIES * pull[group].sum())) for group in groups],
        "temperature_error": [
            float(push[:, group].sum(1).std() / COPIES**0.5 / pull[group].sum().abs()) for group in groups
        ],
        "temperature_of_all": float(push.sum() / (COPIES * pull.sum())),
        "share_of_kl_pull": [float(pull[group].sum() / pull.sum()) for group in groups],
    }


def _kl_slope(posterior: MeanField, belief: Belief, random: int) -> Tensor:
    """−∂KL/∂ρ to N(0, s²), for each weight [P]."""
    scale = posterior.scale[:random].double()
    assert isinstance(belief.prior, Gaussian)
    width = torch.as_tensor(belief.prior.scale, device=scale.device).double()
    return (1 / scale - scale / width.square()) * torch.sigmoid(posterior.rho[:random].double())


def _nll_slopes(belief: Belief, learner: Learner, data: tuple[Tensor, Tensor], evaluations: int) -> Tensor:
    """∂NLL/∂ρ of all rows, estimated apart by each of several copies [COPIES, P]."""
    frozen = FrozenBelief(belief, learner, data, COPIES)
    frozen.kl_weights.zero_()
    total = sum(frozen.gradients(BATCH)[1].double() for _ in range(evaluations))
    assert isinstance(total, Tensor)
    return len(data[0]) / evaluations * total[:, : belief.layout.random]
