"""KL(q‖p) for every posterior and prior: in closed form where the prior knows it, by Monte Carlo otherwise.

The one place where posteriors name priors: the two whose slopes the kernels know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from doxa.contracts import ClosedFormPrior, Estimate, Posterior, Prior
from doxa.flat import PriorGradientKind, PriorGradients
from doxa.posteriors.delta import Delta
from doxa.posteriors.dropout import Dropout
from doxa.posteriors.mean_field import MeanField, draws_at_once
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles
from doxa.posteriors.samples import Samples
from doxa.priors.gaussian import Gaussian
from doxa.priors.scale_mixture import ScaleMixture
from doxa.random import streams
from doxa.random.keys import Key, seed_of
from doxa.random.philox import Stream, fill_normals

SAMPLES, KEY = 16, (0, "kl")  # draws of a KL's estimate, and what they are made of: the same for every belief


def closed_form(prior: Prior) -> ClosedFormPrior | None:
    """The prior, where it can tell its KL from a Gaussian in closed form.

    A class that changes the density of the one it is derived from inherits a KL which is no longer its own: whoever
    says `log_prob` last must have said `kl_from_gaussian` too.
    """
    places = [_definer(prior, name) for name in ("kl_from_gaussian", "add_kl_slopes")]
    density = min(_definer(prior, name) for name in ("log_prob", "grad_log_prob"))
    return cast(ClosedFormPrior, prior) if max(places) <= density and max(places) < math.inf else None


def _definer(prior: Prior, name: str) -> float:
    """How many classes up a method is defined; infinity where it is not."""
    return next((i for i, cls in enumerate(type(prior).__mro__) if name in vars(cls)), math.inf)


def prior_gradients_of(priors: Sequence[Prior], random: int, like: Tensor) -> PriorGradients:
    """The slopes of −log p of several nets' priors as the flat passes take them; nothing for those they do not know."""
    # By exact type: a subclass may have slopes of its own.
    gaussians = [p for p in priors if type(p) is Gaussian]
    mixtures = [p for p in priors if type(p) is ScaleMixture and not isinstance(p.centre, Tensor)]
    if len(gaussians) == len(priors):
        centres_and_precisions = [(p.centre, p.scale**-2) for p in gaussians]
        if not any(isinstance(v, Tensor) for pair in centres_and_precisions for v in pair):
            coefficients = [(float(centre), float(precision), 0.0, 0.0) for centre, precision in centres_and_precisions]
            return PriorGradients(PriorGradientKind.LINEAR_PER_NET, like.new_tensor(coefficients))
        centres, precisions = (_rows(values, random, like) for values in zip(*centres_and_precisions, strict=True))
        return PriorGradients(PriorGradientKind.LINEAR_PER_WEIGHT, like.new_zeros(len(priors), 4), centres, precisions)
    if len(mixtures) == len(priors):
        numbers = [(float(p.centre), p.wide**-2, p.narrow**-2, p.odds) for p in mixtures]
        return PriorGradients(PriorGradientKind.MIXTURE, like.new_tensor(numbers))
    return PriorGradients()


def _rows(values: Sequence[float | Tensor], random: int, like: Tensor) -> Tensor:
    """One number or vector [R] a net as rows [K, R]; one row for all where they are equal."""
    rows = [torch.as_tensor(v, dtype=like.dtype, device=like.device).expand(random) for v in values]
    if all(torch.equal(rows[0], row) for row in rows[1:]):
        return rows[0].contiguous()[None].expand(len(rows), -1)
    return torch.stack(rows)


def kl(q: Posterior, p: Prior | None, samples: int = SAMPLES, key: Key = KEY) -> Estimate:
    """KL(q‖p) over the random weights, exact where it can be.

    KL(q‖p) = −H(q) − E_q[log p(w)]

    Point masses have no entropy to speak of: for them, and for dropout, this is the cross-entropy −E_q[log p(w)].
    """
    if p is None:
        return Estimate(0.0)
    if isinstance(q, MeanField):
        closed = closed_form(p)
        if closed is not None:
            return Estimate(_sum(closed.kl_from_gaussian(q.mean[: q.random], q.scale, q.log_scale)))
        return monte_carlo(q, p, samples, key)
    if isinstance(q, Delta):
        return Estimate(-_sum(p.log_prob(q.mean[: q.random])))
    if isinstance(q, Dropout):
        return Estimate(_sum(dropout_cross_entropy(q, p)))
    if isinstance(q, Particles):
        return Estimate(-_sum(p.log_prob(q.weights[:, : q.random])) / len(q.weights))
    if isinstance(q, Samples):
        return Estimate(-sum(_sum(p.log_prob(block[:, : q.random])) for block in q.weight_blocks()) / len(q.rows))
    if isinstance(q, Mixture):
        # By convexity the mean of the members' KLs bounds the mixture's from above.
        parts = [kl(m, p, samples, (*key, k)) for k, m in enumerate(q.members)]
        error = math.sqrt(sum(e.error**2 for e in parts)) / len(parts)
        return Estimate(sum(e.value for e in parts) / len(parts), error)
    raise TypeError(f"no KL is known from a {type(q).__name__}; add it to posteriors/divergence.py")


def monte_carlo(q: MeanField, p: Prior, samples: int, key: Key) -> Estimate:
    """KL(q‖p) of a mean-field Gaussian with E_q[log p] estimated from draws; the entropy is exact."""
    rows = q.mean[None, : q.random], q.scale[None], q.log_scale[None]
    (row,) = monte_carlo_rows(*rows, p, samples, key).tolist()
    return Estimate(*row)


def monte_carlo_rows(
    mean: Tensor, scale: Tensor, log_scale: Tensor, p: Prior, samples: int = SAMPLES, key: Key = KEY
) -> Tensor:
    """The same of K Gaussians [K, R] side by side, all by the same draws: estimates and standard errors [K, 2]."""
    nets, random = mean.shape
    entropy = log_scale.sum(1, dtype=torch.float64) + random * 0.5 * math.log(2 * math.pi * math.e)
    seeds = torch.tensor([seed_of((*key, s)) for s in range(samples)], device=mean.device)
    log_priors = []
    for block_seeds in seeds.split(draws_at_once(mean.reshape(-1))):
        noise = mean.new_empty(len(block_seeds), random)
        fill_normals(noise, Stream(block_seeds, number=streams.DRAW))
        w = (noise * scale[:, None]).add_(mean[:, None]).view(-1, random)
        log_priors.append(p.log_prob(w).sum(1, dtype=torch.float64).view(nets, -1))
    values = torch.cat(log_priors, 1)
    expected = values.mean(1)
    variance = (values - expected[:, None]).square().sum(1) / max(samples - 1, 1)
    return torch.stack([-entropy - expected, (variance / samples).sqrt()], 1)


def dropout_cross_entropy(q: Dropout, p: Prior) -> Tensor:
    """−E_q[log p(w)] of each weight, exact: a dropped weight is 0 with its rate and mean/(1 − rate) otherwise."""
    mean, keep = q.mean[: q.random], q.keep
    return -(keep * p.log_prob(mean / keep) + (1 - keep) * p.log_prob(torch.zeros_like(mean)))


def _sum(values: Tensor) -> float:
    return float(values.sum(dtype=torch.float64))
