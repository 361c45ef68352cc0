"""The log posterior predictive density, and how far S draws can be trusted to tell it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from doxa.judge.metrics.checks import require_log_prob
from doxa.likelihoods import over_draws


def lppd(log_p: Tensor, weights: Tensor | None = None) -> Tensor:
    """The mean log posterior predictive density of the rows, in nats: densities are averaged, then logged.

    lppd = (1/B) Σᵢ log p̂ᵢ,  p̂ᵢ = (1/S) Σₛ p(yᵢ | xᵢ, wₛ)

    log_p [S, B], as Draws.log_prob gives it; weights [S] as `Draws.weights`, in place of 1/S.
    Gelman, Hwang & Vehtari (2014), Understanding predictive information criteria for Bayesian models.
    """
    require_log_prob(log_p)
    return over_draws.log_mean_exp(log_p.double(), weights).mean()


def lppd_error(log_p: Tensor, weights: Tensor | None = None, strata: Tensor | None = None) -> Tensor:
    """The Monte-Carlo standard error of `lppd`, for draws that all rows share.

    error = sdₛ(cₛ) / √S,  cₛ = (1/B) Σᵢ p(yᵢ | xᵢ, wₛ) / p̂ᵢ

    This is the delta method: d lppd = (1/B) Σᵢ dp̂ᵢ / p̂ᵢ. Rows are summed before the spread over draws is taken, since
    a draw that is poor for one row is often poor for all. 0 for one draw, which cannot tell. log_p [S, B], weights [S];
    strata [S] as `standard_error` has them. Owen (2013), Monte Carlo theory, methods and examples, section 2.7.
    """
    require_log_prob(log_p)
    draws = len(log_p)
    if draws == 1:
        return log_p.new_zeros((), dtype=torch.float64)
    return standard_error(_density_ratios(log_p, weights).mean(1), weights, strata)


def lppd_bias(log_p: Tensor, weights: Tensor | None = None, strata: Tensor | None = None) -> Tensor:
    """How far `lppd` lies below its limit of many draws, to leading order: the log of a noisy mean is too low.

    bias = −(1/2S) (1/B) Σᵢ Varₛ(p(yᵢ | xᵢ, wₛ)) / p̂ᵢ²

    Jensen's inequality, to second order. 0 for one draw. log_p [S, B], weights [S], strata [S].
    Nowozin (2018), Debiasing evidence approximations.
    """
    require_log_prob(log_p)
    draws = len(log_p)
    if draws == 1:
        return log_p.new_zeros((), dtype=torch.float64)
    return -standard_error(_density_ratios(log_p, weights), weights, strata).square().mean() / 2


def gibbs_nll(log_p: Tensor, weights: Tensor | None = None) -> Tensor:
    """The negative log-likelihood of one draw, on average: what is lost by sampling instead of averaging.

    gibbs_nll = −(1/S) Σₛ (1/B) Σᵢ log p(yᵢ | xᵢ, wₛ) ≥ −lppd

    log_p [S, B], weights [S].
    Germain et al. (2016), PAC-Bayesian theory meets Bayesian inference.
    """
    require_log_prob(log_p)
    if weights is None:
        return -log_p.double().mean()
    return -over_draws.mean(log_p.double(), weights).mean()


def standard_error(values: Tensor, weights: Tensor | None = None, strata: Tensor | None = None) -> Tensor:
    """The standard error of the mean over two or more draws [S, ·] of different weights [S].

    error² = Q / (Q − 2 Σₛ wₛ³ + Q²) · Σₛ wₛ² (vₛ − v̄)²,  v̄ = Σₛ wₛ vₛ,  Q = Σₛ wₛ²

    The factor, S / (S − 1) for equal weights, makes it right on average for independent draws of one distribution.
    Where so many draws are made of each of several, `strata` [S] numbers the one each is of: how far the strata lie
    apart is no error then, and error² = Σₖ (Σ wₛ)² errorₖ², s over the k-th. A stratum of one draw cannot tell its
    spread: then that of all draws is taken, which is never too little on average.
    Cochran (1977), Sampling techniques, section 5.3.
    """
    if strata is not None and int(torch.bincount(strata).min()) > 1:
        return _stratified_error(values, weights, strata)
    if weights is None:
        return values.std(0) / math.sqrt(len(values))
    shares = (weights.double() / weights.double().sum()).reshape(-1, *[1] * (values.dim() - 1))
    deviation = shares * (values - over_draws.mean(values, weights))
    square = float(shares.square().sum())
    factor = square / (square - 2 * float(shares.pow(3).sum()) + square**2)
    return (factor * deviation.square().sum(0)).sqrt()


def _stratified_error(values: Tensor, weights: Tensor | None, strata: Tensor) -> Tensor:
    """That of a sum over strata of their means, each times its share of the weights."""
    weights = values.new_ones(len(values)) if weights is None else weights
    inside = [strata == k for k in range(int(strata.max()) + 1)]
    shares = [float(weights[rows].sum() / weights.sum()) for rows in inside]
    errors = [share * standard_error(values[rows], weights[rows]) for share, rows in zip(shares, inside, strict=True)]
    return torch.stack(errors).square().sum(0).sqrt()


def _density_ratios(log_p: Tensor, weights: Tensor | None = None) -> Tensor:
    """p_is / p̂ᵢ [S, B], each between 0 and 1/wₛ; 1 where every draw rules the row out."""
    log_p = log_p.double()
    mean = over_draws.log_mean_exp(log_p, weights)
    return torch.where(mean.isneginf(), 0.0, log_p - mean).exp()
