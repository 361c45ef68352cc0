"""What the means and rhos of several nets stand for: draws of their weights, posteriors and KLs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Estimate, Posterior, Prior
from doxa.flat import draw, fill_scale
from doxa.posteriors import MeanField
from doxa.posteriors.divergence import closed_form, kl
from doxa.posteriors.mean_field import expand_groups, log_softplus, softplus
from doxa.random.philox import Stream

KL_WEIGHTS_PER_PASS = 1 << 22  # weights of several nets whose KLs are worked out in one pass


@dataclass(frozen=True, eq=False)
class MeanFieldBeliefs:
    """What means [K, P] and rhos [K, G] stand for: an independent Gaussian for every random weight."""

    mean: Tensor
    rho: Tensor
    groups: tuple[int, ...] | None
    random: int
    priors: Sequence[Prior]
    prior_ids: Sequence[int]  # which nets were given the same prior
    noise: dict[str, str]
    buffers_by_name: Mapping[str, Tensor]  # buffers [K, ·]

    @torch.no_grad()
    def draw(self, stream: Stream) -> Tensor:
        w, mean = self.mean.clone(), self.mean[:, : self.random]
        if self.groups is None:
            draw(w[:, : self.random], mean, None, None, self.rho, stream)
        else:
            draw(w[:, : self.random], mean, scale_per_weight(self.rho, self.groups), None, None, stream)
        return w

    def posterior(self, net: int) -> Posterior:
        return MeanField(self.mean[net].clone(), self.rho[net].clone(), self.groups)

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return ({k: b[net].clone() for k, b in self.buffers_by_name.items()},)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        if closed_form(self.priors[0]) is None:
            return [kl(self.posterior(k), self.priors[k]) for k in nets]
        nets_by_prior: dict[int, list[int]] = {}  # by their prior
        for k in nets:
            nets_by_prior.setdefault(self.prior_ids[k], []).append(k)
        nets_per_pass = max(1, KL_WEIGHTS_PER_PASS // self.random)
        kl_by_net: dict[int, float] = {}
        for group in nets_by_prior.values():
            for chunk in (group[i : i + nets_per_pass] for i in range(0, len(group), nets_per_pass)):
                kl_by_net |= dict(zip(chunk, self._closed_form_kls(chunk), strict=True))
        return [Estimate(kl_by_net[k]) for k in nets]

    @torch.no_grad()
    def _closed_form_kls(self, nets: Sequence[int]) -> list[float]:
        """The KLs of nets with one prior, in one pass."""
        rows = torch.tensor(nets, device=self.mean.device)
        scale, log_scale = (expand_groups(f(self.rho[rows]), self.groups) for f in (softplus, log_softplus))
        prior = closed_form(self.priors[nets[0]])
        assert prior is not None
        values = prior.kl_from_gaussian(self.mean[rows, : self.random], scale, log_scale)
        return values.sum(1, dtype=torch.float64).tolist()


def scale_per_weight(rho: Tensor, groups: tuple[int, ...]) -> Tensor:
    """The scale of every weight [K, R], of one rho a group [K, G]."""
    return expand_groups(fill_scale(torch.empty_like(rho), rho), groups)
