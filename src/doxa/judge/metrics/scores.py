"""Scores of averaged class probabilities."""

from __future__ import annotations

from torch import Tensor

from doxa.judge.metrics.checks import require_probabilities


def error(p: Tensor, y: Tensor) -> Tensor:
    """The share of rows whose likeliest class is not the label.

    error = (1/B) Σᵢ [argmax_c p_ic ≠ yᵢ]

    Among equally likely classes the first counts. p [B, C], y [B].
    Duda & Hart (1973), Pattern classification and scene analysis.
    """
    y = require_probabilities(p, y)
    return (p.argmax(1) != y).double().mean()


def brier(p: Tensor, y: Tensor) -> Tensor:
    """The squared distance between the probabilities and the label, summed over all classes.

    brier = (1/B) Σᵢ Σ_c (p_ic − [yᵢ = c])²

    With two classes this is twice the one-sided score (p − y)². p [B, C], y [B].
    Brier (1950), Verification of forecasts expressed in terms of probability.
    """
    y = require_probabilities(p, y)
    p = p.double()
    # Σ_c (p_c − [y = c])² without building the one-hot table.
    return (p.square().sum(1) - 2 * p.gather(1, y[:, None]).squeeze(1) + 1).mean().clamp_min(0)


def nll(p: Tensor, y: Tensor) -> Tensor:
    """The negative log-probability of the labels, in nats; infinite where a label was ruled out.

    nll = −(1/B) Σᵢ log p_i,yᵢ

    p [B, C], y [B].
    Good (1952), Rational decisions.
    """
    y = require_probabilities(p, y)
    return -p.double().gather(1, y[:, None]).log().mean()
