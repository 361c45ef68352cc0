"""KL(q‖p) for every posterior and prior: in closed form by table, by Monte Carlo otherwise.

The one place where posteriors name priors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Estimate, Posterior, Prior
from doxa.flat import PriorGradientKind, PriorGradients
from doxa.posteriors.delta import Delta
from doxa.posteriors.dropout import Dropout
from doxa.posteriors.mean_field import MeanField, draws_at_once
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles
from doxa.posteriors.samples import Samples
from doxa.priors.gaussian import Gaussian
from doxa.priors.laplace import Laplace
from doxa.priors.scale_mixture import ScaleMixture
from doxa.random.keys import Key, seed_of
from doxa.random.philox import Stream, fill_normals


@dataclass(frozen=True)
class ClosedFormKL:
    """A KL from N(mean, scale²), elementwise, and a way to add its slopes to two gradients in place.

    The slopes are `weight` times those of −E_q[log p(w)]; the entropy's are every prior's alike.
    """

    value: Callable[[Any, Tensor, Tensor, Tensor], Tensor]  # (prior, mean, scale, log scale)
    add_slopes: Callable[[Any, Tensor, Tensor, float | Tensor, Tensor, Tensor], None]  # (…, weight, by mean, by scale)


def _gaussian(p: Gaussian, mean: Tensor, scale: Tensor, log_scale: Tensor) -> Tensor:
    prior_scale = torch.as_tensor(p.scale, dtype=mean.dtype, device=mean.device)
    square = scale.square() + (mean - p.centre).square()
    return prior_scale.log() - log_scale + square / (2 * prior_scale.square()) - 0.5


def _gaussian_slopes(
    p: Gaussian, mean: Tensor, scale: Tensor, weight: float | Tensor, by_mean: Tensor, by_scale: Tensor
) -> None:
    by_mean += weight * (mean - p.centre) * p.scale**-2
    by_scale += weight * scale * p.scale**-2


def _laplace(p: Laplace, mean: Tensor, scale: Tensor, log_scale: Tensor) -> Tensor:
    # E|w − centre| under a Gaussian is the mean of a folded normal.
    distance = mean - p.centre
    z = distance / scale.clamp_min(torch.finfo(scale.dtype).tiny)
    folded = scale * math.sqrt(2 / math.pi) * (-0.5 * z.square()).exp() + distance * torch.erf(z / math.sqrt(2))
    return math.log(2 * p.scale) + folded / p.scale - log_scale - 0.5 * math.log(2 * math.pi * math.e)


def _laplace_slopes(
    p: Laplace, mean: Tensor, scale: Tensor, weight: float | Tensor, by_mean: Tensor, by_scale: Tensor
) -> None:
    z = (mean - p.centre) / scale
    by_mean += torch.erf(z * math.sqrt(0.5)).mul_(weight / p.scale)
    by_scale += z.square_().mul_(-0.5).exp_().mul_(weight * math.sqrt(2 / math.pi) / p.scale)


CLOSED_FORMS: dict[type, ClosedFormKL] = {
    Gaussian: ClosedFormKL(_gaussian, _gaussian_slopes),
    Laplace: ClosedFormKL(_laplace, _laplace_slopes),
}


def prior_gradients_of(priors: Sequence[Prior], random: int, like: Tensor) -> PriorGradients:
    """The slopes of −log p of several nets' priors as the flat passes take them; nothing for those they do not know."""
    # By exact type, as in CLOSED_FORMS: a subclass may have slopes of its own.
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


def kl(q: Posterior, p: Prior | None, samples: int = 16, key: Key = (0, "kl")) -> Estimate:
    """KL(q‖p) over the random weights, exact where it can be.

    KL(q‖p) = −H(q) − E_q[log p(w)]

    Point masses have no entropy to speak of: for them, and for dropout, this is the cross-entropy −E_q[log p(w)].
    """
    if p is None:
        return Estimate(0.0)
    if isinstance(q, MeanField):
        if type(p) in CLOSED_FORMS:
            mean = q.mean[: q.random]
            return Estimate(_sum(CLOSED_FORMS[type(p)].value(p, mean, q.scale, q.log_scale)))
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
    entropy = _sum(q.log_scale) + q.random * 0.5 * math.log(2 * math.pi * math.e)
    mean, scale = q.mean[: q.random], q.scale
    seeds = torch.tensor([seed_of((*key, s)) for s in range(samples)], device=mean.device)
    log_priors = []
    for block_seeds in seeds.split(draws_at_once(mean)):
        w = mean.new_empty(len(block_seeds), q.random)
        fill_normals(w, Stream(block_seeds))
        log_priors += p.log_prob(w.mul_(scale).add_(mean)).sum(1, dtype=torch.float64).tolist()
    expected = sum(log_priors) / samples
    variance = sum((f - expected) ** 2 for f in log_priors) / max(samples - 1, 1)
    return Estimate(-entropy - expected, math.sqrt(variance / samples))


def dropout_cross_entropy(q: Dropout, p: Prior) -> Tensor:
    """−E_q[log p(w)] of each weight, exact: a dropped weight is 0 with its rate and mean/(1 − rate) otherwise."""
    mean, keep = q.mean[: q.random], q.keep
    return -(keep * p.log_prob(mean / keep) + (1 - keep) * p.log_prob(torch.zeros_like(mean)))


def _sum(values: Tensor) -> float:
    return float(values.sum(dtype=torch.float64))
