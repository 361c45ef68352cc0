"""What a careful reader of the numbers would remark on: each finding a sentence with a number and advice, or None."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from doxa.contracts import Posterior, Prior
from doxa.judge.metrics.predictive_density import lppd, lppd_bias, lppd_error
from doxa.predict.belief import Belief

QUADRATURE_NODES = 24  # of the Gauss-Hermite rule; even, so that no node falls on a prior's spike
MEAN_PULL = 0.1  # for a Gaussian prior: a mean within a tenth of a scale of the centre …
SCALE_PULL = 0.4  # … and a scale within about 20 % of the prior's, since (1 ± 0.2)² − 1 ≈ ±0.4
COLLAPSED_SHARE = 0.8  # of the weights; a good fit of a large net often leaves half of them idle
CONSTANT_SHARE = 0.02  # predictions that vary by less than a fiftieth of the targets follow no feature of the inputs
LPPD_ERROR_NATS = 0.01  # a Monte-Carlo error of a hundredth of a nat hides the differences that papers report
LPPD_ERROR_SHARE = 0.05  # or one of a twentieth of the score itself
LEAST_ERROR_NATS = 0.001  # below a thousandth of a nat no share of the score is worth more draws
LEAST_GAP = 0.02  # two points of confidence, which a reader would see in a reliability diagram
STANDARD_ERRORS = 3  # standard errors: by chance about once in a thousand looks


def collapsed(belief: Belief) -> str | None:
    """Whether most weights are where the prior alone would put them."""
    scale = belief.posterior.scale
    if belief.prior is None or not bool((scale > 0).any()):
        return None
    mean_pull, scale_pull = kl_gradients(belief.prior, belief.posterior.mean[: len(scale)], scale)
    at_prior = (mean_pull.abs() < MEAN_PULL) & (scale_pull.abs() < SCALE_PULL)
    share = float(at_prior.double().mean())
    if share <= COLLAPSED_SHARE:
        return None
    return (
        f"Collapsed onto the prior: {share:.0%} of the random weights are where the prior alone would put "
        "them, so the data have taught them nothing. If the belief underfits, start from a smaller scale, "
        "take a narrower prior or a smaller net, or let the KL weight rise during training."
    )


def kl_gradients(prior: Prior, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of KL(N(mean, scale²) ‖ prior) in mean / scale and in log scale, [R] each.

    −scale E[∂ log p(w)]  and  −E[z scale ∂ log p(w)] − 1,  w = mean + scale z,  z ~ N(0, 1)

    Both vanish for a weight that the data do not pull at, whatever the shape of the prior.
    """
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
    mean_pull, scale_pull = torch.zeros_like(mean), torch.full_like(mean, -1.0)
    for z, node_weight in zip(nodes.tolist(), (node_weights / node_weights.sum()).tolist(), strict=True):
        force = -node_weight * scale * prior.grad_log_prob(mean + z * scale)
        mean_pull += force
        scale_pull += z * force
    return mean_pull, scale_pull


def constant(prediction: Tensor, target: Tensor) -> str | None:
    """Whether predictions [N, D] hardly vary over rows, where their targets [N, D] do."""
    spread = target.double().std(0, correction=0)
    varying = spread > 0
    if not bool(varying.any()):
        return None
    share = float((prediction.double().std(0, correction=0)[varying] / spread[varying]).max())
    if share >= CONSTANT_SHARE:
        return None
    return (
        f"Almost constant output: predictions vary over rows by {share:.1%} of what the targets do. Look at "
        "the scaling of the inputs, the learning rate and the number of epochs."
    )


def too_few_samples(
    posterior: Posterior, log_p: Tensor, weights: Tensor | None = None, strata: Tensor | None = None
) -> str | None:
    """Whether draws are too few for the lppd they gave, and how many would do. log_p [S, B], weights, strata [S]."""
    draws = len(log_p)
    if draws == 1:
        return (
            None
            if has_all_distinct_draws(posterior, draws)
            else "One draw cannot tell its own Monte-Carlo error: ask for 50."
        )
    value = float(lppd(log_p, weights))
    standard_error, bias = (float(f(log_p, weights, strata)) for f in (lppd_error, lppd_bias))
    if not math.isfinite(value):
        return None
    tolerance = max(LEAST_ERROR_NATS, min(LPPD_ERROR_NATS, LPPD_ERROR_SHARE * abs(value)))
    if max(standard_error, -bias) <= tolerance or has_all_distinct_draws(posterior, draws):
        return None
    needed = draws * max((standard_error / tolerance) ** 2, -bias / tolerance)
    return (
        f"Too few samples: with {draws} draws the lppd of {value:.4g} has a Monte-Carlo error of "
        f"{standard_error:.2g} and a bias of about {bias:.2g} nats, where {tolerance:.2g} would be small; "
        f"{round_up(needed):,} draws would bring both below."
    )


def has_all_distinct_draws(posterior: Posterior, draws: int) -> bool:
    """Whether asking for more than so many draws gives no more: those of a point, or of a handful of particles."""
    return posterior.distinct is not None and draws >= posterior.distinct


def round_up(number: float) -> int:
    """The next number of two significant digits."""
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / unit) * unit)


def overconfident(confidence: Tensor, correct: Tensor) -> str | None:
    """Whether the likeliest class is right less often than said; confidence [N], right [N] of 0 and 1."""
    mean_confidence, accuracy, tolerance = _confidence_and_accuracy(confidence, correct)
    if mean_confidence - accuracy <= tolerance:
        return None
    return (
        f"Overconfident: its mean confidence is {mean_confidence:.1%}, but {accuracy:.1%} of its labels are right. "
        "More posterior scale, an ensemble, or tempering on held-out data would bring them together."
    )


def underconfident(confidence: Tensor, correct: Tensor) -> str | None:
    """Whether the likeliest class is right more often than said; confidence [N], right [N] of 0 and 1."""
    mean_confidence, accuracy, tolerance = _confidence_and_accuracy(confidence, correct)
    if accuracy - mean_confidence <= tolerance:
        return None
    return (
        f"Underconfident: its mean confidence is {mean_confidence:.1%}, but {accuracy:.1%} of its labels are right. "
        "Train longer, with a smaller KL weight, or with a prior of another width."
    )


def too_narrow(coverage: float, level: float, targets: int) -> str | None:
    """Whether intervals of the given level hold too few of the targets."""
    if level - coverage <= _coverage_tolerance(level, targets):
        return None
    return (
        f"Overconfident: its {level:.0%} intervals hold {coverage:.1%} of the targets. Learn the noise "
        "scale, or let it depend on the input; or allow more posterior scale."
    )


def too_wide(coverage: float, level: float, targets: int) -> str | None:
    """Whether intervals of the given level hold too many of the targets."""
    if coverage - level <= _coverage_tolerance(level, targets):
        return None
    return (
        f"Underconfident: its {level:.0%} intervals hold {coverage:.1%} of the targets. Learn the noise "
        "scale, train longer, or take a prior of another width."
    )


def _confidence_and_accuracy(confidence: Tensor, correct: Tensor) -> tuple[float, float, float]:
    """Mean confidence, accuracy, and how far apart they may be by chance or without being noticed."""
    gap = confidence.double() - correct.double()
    noise = float(gap.std(correction=0)) / math.sqrt(len(gap))
    return float(confidence.double().mean()), float(correct.double().mean()), max(LEAST_GAP, STANDARD_ERRORS * noise)


def _coverage_tolerance(level: float, targets: int) -> float:
    return max(LEAST_GAP, STANDARD_ERRORS * math.sqrt(level * (1 - level) / targets))
