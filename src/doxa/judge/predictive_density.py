"""The log posterior predictive density, and how far S draws can be trusted to tell it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from doxa.judge.checks import require_log_prob


def lppd(log_p: Tensor) -> Tensor:
    """The mean log posterior predictive density of the rows, in nats: densities are averaged, then logged.

    lppd = (1/B) Σᵢ log p̂ᵢ,  p̂ᵢ = (1/S) Σₛ p(yᵢ | xᵢ, wₛ)

    log_p [S, B], as Draws.log_prob gives it.
    Gelman, Hwang & Vehtari (2014), Understanding predictive information criteria for Bayesian models.
    """
    require_log_prob(log_p)
    return _log_mean_exp(log_p.double()).mean()


def lppd_error(log_p: Tensor) -> Tensor:
    """The Monte-Carlo standard error of `lppd`, for draws that all rows share.

    error = sdₛ(cₛ) / √S,  cₛ = (1/B) Σᵢ p(yᵢ | xᵢ, wₛ) / p̂ᵢ

    This is the delta method: d lppd = (1/B) Σᵢ dp̂ᵢ / p̂ᵢ. Rows are summed before the spread over draws is taken, since
    a draw that is poor for one row is often poor for all. 0 for one draw, which cannot tell. log_p [S, B].
    Owen (2013), Monte Carlo theory, methods and examples, section 2.7.
    """
    require_log_prob(log_p)
    draws = len(log_p)
    if draws == 1:
        return log_p.new_zeros((), dtype=torch.float64)
    return _ratios(log_p).mean(1).std() / math.sqrt(draws)


def lppd_bias(log_p: Tensor) -> Tensor:
    """How far `lppd` lies below its limit of many draws, to leading order: the log of a noisy mean is too low.

    bias = −(1/2S) (1/B) Σᵢ Varₛ(p(yᵢ | xᵢ, wₛ)) / p̂ᵢ²

    Jensen's inequality, to second order. 0 for one draw. log_p [S, B].
    Nowozin (2018), Debiasing evidence approximations.
    """
    require_log_prob(log_p)
    draws = len(log_p)
    if draws == 1:
        return log_p.new_zeros((), dtype=torch.float64)
    return -_ratios(log_p).var(0).mean() / (2 * draws)


def gibbs_nll(log_p: Tensor) -> Tensor:
    """The negative log-likelihood of one draw, on average: what is lost by sampling instead of averaging.

    gibbs_nll = −(1/S) Σₛ (1/B) Σᵢ log p(yᵢ | xᵢ, wₛ) ≥ −lppd

    log_p [S, B].
    Germain et al. (2016), PAC-Bayesian theory meets Bayesian inference.
    """
    require_log_prob(log_p)
    return -log_p.double().mean()


def _log_mean_exp(log_p: Tensor) -> Tensor:
    return log_p.logsumexp(0) - math.log(len(log_p))


def _ratios(log_p: Tensor) -> Tensor:
    """p_is / p̂ᵢ [S, B], each between 0 and S; 1 where every draw rules the row out."""
    log_p = log_p.double()
    mean = _log_mean_exp(log_p)
    return torch.where(mean.isneginf(), 0.0, log_p - mean).exp()
