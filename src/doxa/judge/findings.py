"""What a careful reader of the numbers would remark on: each finding a sentence with a number and advice, or None."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from doxa.contracts import Posterior, Prior
from doxa.judge.metrics.predictive_density import lppd, lppd_bias, lppd_error
from doxa.predict.belief import Belief

NODES = 24  # of the Gauss-Hermite rule; even, so that no node falls on a prior's spike
MEAN_PULL = 0.1  # for a Gaussian prior: a mean within a tenth of a scale of the centre …
SCALE_PULL = 0.4  # … and a scale within about 20 % of the prior's, since (1 ± 0.2)² − 1 ≈ ±0.4
MOST = 0.8  # of the weights; a good fit of a large net often leaves half of them idle
CONSTANT = 0.02  # predictions that vary by less than a fiftieth of the targets follow no feature of the inputs
NATS = 0.01  # a Monte-Carlo error of a hundredth of a nat hides the differences that papers report
SHARE = 0.05  # or one of a twentieth of the score itself
FEWEST_NATS = 0.001  # below a thousandth of a nat no share of the score is worth more draws
POINTS = 0.02  # two points of confidence, which a reader would see in a reliability diagram
ERRORS = 3  # standard errors: by chance about once in a thousand looks


def collapsed(belief: Belief) -> str | None:
    """Whether most weights are where the prior alone would put them."""
    scale = belief.posterior.scale
    if belief.prior is None or not bool((scale > 0).any()):
        return None
    mean_pull, scale_pull = pulls(belief.prior, belief.posterior.mean[: len(scale)], scale)
    at_prior = (mean_pull.abs() < MEAN_PULL) & (scale_pull.abs() < SCALE_PULL)
    share = float(at_prior.double().mean())
    if share <= MOST:
        return None
    return (
        f"Collapsed onto the prior: {share:.0%} of the random weights are where the prior alone would put "
        "them, so the data have taught them nothing. If the belief underfits, start from a smaller scale, "
        "take a narrower prior or a smaller net, or let the KL weight rise during training."
    )


def pulls(prior: Prior, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of KL(N(mean, scale²) ‖ prior) in mean / scale and in log scale, [R] each.

    −scale E[∂ log p(w)]  and  −E[z scale ∂ log p(w)] − 1,  w = mean + scale z,  z ~ N(0, 1)

    Both vanish for a weight that the data do not pull at, whatever the shape of the prior.
    """
    nodes, shares = np.polynomial.hermite_e.hermegauss(NODES)
    mean_pull, scale_pull = torch.zeros_like(mean), torch.full_like(mean, -1.0)
    for z, share in zip(nodes.tolist(), (shares / shares.sum()).tolist(), strict=True):
        force = -share * scale * prior.grad_log_prob(mean + z * scale)
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
    if share >= CONSTANT:
        return None
    return (
        f"Almost constant output: predictions vary over rows by {share:.1%} of what the targets do. Look at "
        "the scaling of the inputs, the learning rate and the number of epochs."
    )


def too_few_samples(posterior: Posterior, log_p: Tensor, weights: Tensor | None = None) -> str | None:
    """Whether the draws are too few for the lppd they gave, and how many would do. log_p [S, B], weights [S]."""
    draws = len(log_p)
    if draws == 1:
        return None if exhausted(posterior, draws) else "One draw cannot tell its own Monte-Carlo error: ask for 50."
    value, spread, bias = (float(f(log_p, weights)) for f in (lppd, lppd_error, lppd_bias))
    if not math.isfinite(value):
        return None
    allowed = max(FEWEST_NATS, min(NATS, SHARE * abs(value)))
    if max(spread, -bias) <= allowed or exhausted(posterior, draws):
        return None
    needed = draws * max((spread / allowed) ** 2, -bias / allowed)
    return (
        f"Too few samples: with {draws} draws the lppd of {value:.4g} has a Monte-Carlo error of "
        f"{spread:.2g} and a bias of about {bias:.2g} nats, where {allowed:.2g} would be small; "
        f"{rounded_up(needed):,} draws would bring both below."
    )


def exhausted(posterior: Posterior, draws: int) -> bool:
    """Whether asking for more than so many draws gives no more: those of a point, or of a handful of particles."""
    return posterior.distinct is not None and draws >= posterior.distinct


def rounded_up(number: float) -> int:
    """The next number of two significant digits."""
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / unit) * unit)


def overconfident(confidence: Tensor, right: Tensor) -> str | None:
    """Whether the likeliest class is right less often than said; confidence [N], right [N] of 0 and 1."""
    said, was, allowed = _compared(confidence, right)
    if said - was <= allowed:
        return None
    return (
        f"Overconfident: its mean confidence is {said:.1%}, but {was:.1%} of its labels are right. More "
        "posterior scale, an ensemble, or tempering on held-out data would bring them together."
    )


def underconfident(confidence: Tensor, right: Tensor) -> str | None:
    """Whether the likeliest class is right more often than said; confidence [N], right [N] of 0 and 1."""
    said, was, allowed = _compared(confidence, right)
    if was - said <= allowed:
        return None
    return (
        f"Underconfident: its mean confidence is {said:.1%}, but {was:.1%} of its labels are right. Train "
        "longer, with a smaller KL weight, or with a prior of another width."
    )


def too_narrow(coverage: float, level: float, targets: int) -> str | None:
    """Whether intervals of the given level hold too few of the targets."""
    if level - coverage <= _binomial(level, targets):
        return None
    return (
        f"Overconfident: its {level:.0%} intervals hold {coverage:.1%} of the targets. Learn the noise "
        "scale, or let it depend on the input; or allow more posterior scale."
    )


def too_wide(coverage: float, level: float, targets: int) -> str | None:
    """Whether intervals of the given level hold too many of the targets."""
    if coverage - level <= _binomial(level, targets):
        return None
    return (
        f"Underconfident: its {level:.0%} intervals hold {coverage:.1%} of the targets. Learn the noise "
        "scale, train longer, or take a prior of another width."
    )


def _compared(confidence: Tensor, right: Tensor) -> tuple[float, float, float]:
    """Mean confidence, accuracy, and how far apart they may be by chance or without being noticed."""
    gap = confidence.double() - right.double()
    noise = float(gap.std(correction=0)) / math.sqrt(len(gap))
    return float(confidence.double().mean()), float(right.double().mean()), max(POINTS, ERRORS * noise)


def _binomial(level: float, targets: int) -> float:
    return max(POINTS, ERRORS * math.sqrt(level * (1 - level) / targets))
