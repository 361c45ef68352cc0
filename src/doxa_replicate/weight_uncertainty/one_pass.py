"""KLs of a fleet's nets from priors without a closed form, in a few passes over all nets instead of some for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from doxa.contracts import Estimate, Prior
from doxa.engine.contracts import Beliefs
from doxa.gradients.mean_field_beliefs import MeanFieldBeliefs
from doxa.posteriors.divergence import closed_form
from doxa.posteriors.mean_field import log_softplus, softplus
from doxa.random import streams
from doxa.random.keys import seed_of
from doxa.random.philox import Stream, fill_normals

DRAWS, KEY = 16, (0, "kl")  # those of `kl`, so that its numbers are re-created
NUMBERS_PER_PASS = {"cpu": 1 << 22, "cuda": 1 << 26}


def in_one_pass(beliefs: Beliefs) -> Beliefs:
    """The same beliefs, whose KLs are estimated side by side where each would be by itself."""
    if not isinstance(beliefs, MeanFieldBeliefs) or beliefs.groups is not None:
        return beliefs
    if closed_form(beliefs.priors[0]) is not None:
        return beliefs
    return OnePassBeliefs(**{field.name: getattr(beliefs, field.name) for field in fields(beliefs)})


@dataclass(frozen=True, eq=False)
class OnePassBeliefs(MeanFieldBeliefs):
    """Beliefs of one scale a weight under priors that only draws can be held against."""

    @torch.no_grad()
    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        noise = self._noise()
        nets_by_prior: dict[int, list[int]] = {}
        for k in nets:
            nets_by_prior.setdefault(self.prior_ids[k], []).append(k)
        nets_per_pass = max(1, NUMBERS_PER_PASS.get(self.mean.device.type, 1 << 22) // noise.numel())
        order, kls, errors = [], [], []
        for group in nets_by_prior.values():
            for chunk in (group[i : i + nets_per_pass] for i in range(0, len(group), nets_per_pass)):
                value, error = self._estimates(chunk, self.priors[chunk[0]], noise)
                order += chunk
                kls.append(value)
                errors.append(error)
        rows = torch.stack([torch.cat(kls), torch.cat(errors)], 1).tolist()
        estimates = {k: Estimate(*row) for k, row in zip(order, rows, strict=True)}
        return [estimates[k] for k in nets]

    def _noise(self) -> Tensor:
        """The same draws for every net and epoch [S, R]."""
        noise = self.mean.new_empty(DRAWS, self.random)
        seeds = torch.tensor([seed_of((*KEY, s)) for s in range(DRAWS)], device=self.mean.device)
        fill_normals(noise, Stream(seeds, number=streams.DRAW))
        return noise

    def _estimates(self, nets: Sequence[int], prior: Prior, noise: Tensor) -> tuple[Tensor, Tensor]:
        """−H(q) − E_q[log p(w)] of nets with one prior, and its standard error; the entropy is exact."""
        rows = torch.tensor(nets, device=self.mean.device)
        rho = self.rho[rows]
        constant = self.random * 0.5 * math.log(2 * math.pi * math.e)
        entropy = log_softplus(rho).sum(1, dtype=torch.float64) + constant
        w = torch.addcmul(self.mean[rows, None, : self.random], softplus(rho)[:, None], noise)
        log_priors = prior.log_prob(w).sum(-1, dtype=torch.float64)
        return -entropy - log_priors.mean(1), log_priors.std(1) / math.sqrt(DRAWS)
