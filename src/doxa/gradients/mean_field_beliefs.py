"""What the means and rhos of several nets stand for: draws of their weights, posteriors and KLs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.contracts import Estimate, Posterior, Prior
from doxa.flat import draw, fill_scale
from doxa.posteriors import MeanField
from doxa.posteriors.divergence import closed_form, monte_carlo_rows
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
        """Those of nets with one prior side by side, and all read from the device at once."""
        nets_by_prior: dict[int, list[int]] = {}
        for k in nets:
            nets_by_prior.setdefault(self.prior_ids[k], []).append(k)
        chunks: list[list[int]] = []
        for group in nets_by_prior.values():
            at_once = nets_at_once(self.priors[group[0]], self.random, self.mean.is_cuda)
            chunks += [group[i : i + at_once] for i in range(0, len(group), at_once)]
        rows = torch.cat([self._kls(chunk) for chunk in chunks]).tolist() if chunks else []
        estimates = dict(zip((k for chunk in chunks for k in chunk), rows, strict=True))
        return [Estimate(*estimates[k]) for k in nets]

    @torch.no_grad()
    def _kls(self, nets: Sequence[int]) -> Tensor:
        """The KLs of nets with one prior, and their standard errors [n, 2]."""
        rows = torch.tensor(nets, device=self.mean.device)
        mean, rho, prior = self.mean[rows, : self.random], self.rho[rows], self.priors[nets[0]]
        scale, log_scale = (expand_groups(f(rho), self.groups) for f in (softplus, log_softplus))
        closed = closed_form(prior)
        if closed is None:
            return monte_carlo_rows(mean, scale, log_scale, prior)
        values = closed.kl_from_gaussian(mean, scale, log_scale).sum(1, dtype=torch.float64)
        return torch.stack([values, torch.zeros_like(values)], 1)


def nets_at_once(prior: Prior, random: int, on_gpu: bool) -> int:
    """How many nets' KLs are worked out in one pass; by draws on a CPU only one, to the bits that it has by itself."""
    return max(1, KL_WEIGHTS_PER_PASS // max(1, random)) if on_gpu or closed_form(prior) is not None else 1


def scale_per_weight(rho: Tensor, groups: tuple[int, ...]) -> Tensor:
    """The scale of every weight [K, R], of one rho a group [K, G]."""
    return expand_groups(fill_scale(torch.empty_like(rho), rho), groups)
