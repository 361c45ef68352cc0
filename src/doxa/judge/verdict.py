"""The judgement of a belief: every score its likelihood calls for, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.contracts import Estimate
from doxa.data.rows import as_pair, count
from doxa.judge import findings
from doxa.judge.judgement import Judgement
from doxa.judge.metrics.calibration import BINS, ece, ece_adaptive, ece_classwise
from doxa.judge.metrics.checks import require_bins, require_level
from doxa.judge.metrics.crps import crps_gaussian_mixture
from doxa.judge.metrics.half_sampling import half_sampling_error
from doxa.judge.metrics.labels import reading
from doxa.judge.metrics.predictive_density import gibbs_nll, lppd, lppd_error, mean_error
from doxa.judge.metrics.regression import coverage, rmse, width
from doxa.judge.metrics.scores import brier, error
from doxa.judge.metrics.shift import auroc, fpr95
from doxa.judge.recalibration import interval
from doxa.kernels import over_draws
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.predict.sweep import like

LEVELS = (0.5, 0.9, 0.95)  # of the central intervals whose coverage is always told
CRPS_DRAWS = 200  # at most, evenly spaced: its cost grows with their square

Scores = dict[str, Estimate]
Average = Callable[[Tensor, Tensor], Tensor]  # of values [S, ·], over the draws of these indices


def judge(
    belief: Belief,
    data: Any,
    samples: int = 50,
    seed: int = 0,
    out_of_distribution: Any = None,
    bins: int = BINS,
    level: float = 0.9,
    levels: Tensor | None = None,
) -> Judgement:
    """Every score that the belief's likelihood calls for on data (x [B, ·], y [B, ·]), and findings in words.

    p(y | x) ≈ (1/S) Σₛ p(y | x, wₛ), one function a draw for all rows

    Classification: error, brier, ece (equal width, class-wise, adaptive) of the averaged probabilities, each label
    of a row by itself. Regression: rmse, crps, standard deviations, coverage of central intervals and their width
    at `level`, each interval as `levels` (`Chosen.levels`) move it. Both: nll = −lppd and gibbs_nll, a row's labels or
    targets together. Inputs alone given as `out_of_distribution` add how well entropy and mutual information tell them
    apart. No Monte-Carlo error is computed (0) for coverage, width and regression's shift scores.
    Gelman et al. (2014); Guo et al. (2017); Gneiting & Raftery (2007).
    """
    require_bins(bins)
    require_level(level)
    x, y = as_pair(data, like(belief.posterior), "data")
    draws = belief.predict(x, samples, seed)
    y = belief.likelihood.check(draws.outputs[0], y)
    unseen = None if out_of_distribution is None else belief.predict(out_of_distribution, samples, seed)
    log_p = draws.log_prob(y)
    scores = _density(log_p, draws.weights)
    if belief.likelihood.discrete:
        own, said = _classification(draws, y, unseen, bins)
    else:
        own, said = _regression(draws, y, unseen, level, levels)
    said = [findings.collapsed(belief), findings.too_few_samples(belief.posterior, log_p, draws.weights), *said]
    found = {**own, **scores}
    if findings.exhausted(belief.posterior, len(draws)):
        # There are no other draws for a score to move with.
        found = {name: Estimate(e.value) for name, e in found.items()}
    return Judgement(found, count(x), len(draws), [s for s in said if s is not None])


def _density(log_p: Tensor, weights: Tensor | None) -> Scores:
    value, spread = float(lppd(log_p, weights)), float(lppd_error(log_p, weights))
    each = -log_p.double().mean(1)
    gibbs = float(mean_error(each, weights)) if len(each) > 1 else 0.0
    return {
        "nll": Estimate(-value, spread),
        "lppd": Estimate(value, spread),
        "gibbs_nll": Estimate(float(gibbs_nll(log_p, weights)), gibbs),
    }


def _classification(draws: Draws, y: Tensor, unseen: Draws | None, bins: int) -> tuple[Scores, list[str | None]]:
    means = draws.means
    read, labels = reading(draws.likelihood, means, y)
    p, flat = read(means), labels.flatten()
    entropies = torch.special.entr(p).sum((2, 3)).mean(1)  # [S]
    average = _averages(draws)

    def scores(index: Tensor) -> dict[str, Tensor]:
        mean = average(p, index)
        each = mean.flatten(0, 1)
        entropy = torch.special.entr(mean).sum((1, 2)).mean()
        return {
            "error": error(each, flat),
            "brier": brier(each, flat),
            "ece": ece(each, flat, bins),
            "ece_classwise": ece_classwise(each, flat, bins),
            "ece_adaptive": ece_adaptive(each, flat, bins),
            "entropy": entropy,
            "mutual_information": (entropy - average(entropies, index)).clamp_min(0),
        }

    found = _with_errors(scores, len(draws))
    if unseen is not None:
        found |= _with_errors(_shift_by(p, read(unseen.means), average), len(draws))
    each = over_draws.mean(p, draws.weights).flatten(0, 1)
    confidence, label = each.max(1)
    right = label == flat
    said = [
        findings.constant(each, F.one_hot(flat, each.shape[1])),
        findings.overconfident(confidence, right),
        findings.underconfident(confidence, right),
    ]
    return found, said


def _regression(
    draws: Draws, y: Tensor, unseen: Draws | None, level: float, levels: Tensor | None
) -> tuple[Scores, list[str | None]]:
    means = draws.means
    variances = draws.likelihood.variance(draws.outputs, draws.parameters)
    average, deviation = _averages(draws), _averages(draws, over_draws.std)

    def scores(index: Tensor) -> dict[str, Tensor]:
        return {
            "rmse": rmse(average(means, index), y),
            "aleatoric": average(variances, index).sqrt().mean(),
            "epistemic": deviation(means, index).mean(),
        }

    found = _with_errors(scores, len(draws))
    split = getattr(draws.likelihood, "split", None)  # a Gaussian's location and scale: for these the crps is closed
    if split is not None:
        location, scale = split(draws.outputs, draws.parameters)
        some = torch.linspace(0, len(draws) - 1, min(len(draws), CRPS_DRAWS)).round().long()
        shares = None if draws.weights is None else draws.weights[some]
        found["crps"] = crps_gaussian_mixture(location[some], scale.expand_as(location)[some], y, shares)
    for each in sorted({*LEVELS, level}):
        lower, upper = interval(draws, each, levels)
        found[f"coverage_{100 * each:g}"] = Estimate(float(coverage(y, lower, upper)))
        if each == level:
            found[f"width_{100 * each:g}"] = Estimate(float(width(lower, upper)))
    if unseen is not None:
        found |= {k: Estimate(float(v)) for k, v in _shift(_unsure(draws), _unsure(unseen)).items()}
    covered = found[f"coverage_{100 * level:g}"].value
    said = [
        findings.constant(draws.mean.reshape(len(y), -1), y.reshape(len(y), -1)),
        findings.too_narrow(covered, level, y.numel()),
        findings.too_wide(covered, level, y.numel()),
    ]
    return found, said


def _averages(draws: Draws, average: Callable[..., Tensor] = over_draws.mean) -> Average:
    """An average of values [S, ·] over some of the draws, by their weights."""
    weights = draws.weights
    return lambda values, index: average(values[index], None if weights is None else weights[index])


def _with_errors(scores: Callable[[Tensor], dict[str, Tensor]], draws: int) -> Scores:
    """Scores of all draws, each with its error by half sampling; `scores` takes the indices of draws to use."""
    values = scores(torch.arange(draws))
    errors = half_sampling_error(lambda index: torch.stack(list(scores(index).values())).double(), draws)
    return {name: Estimate(float(v), float(e)) for (name, v), e in zip(values.items(), errors, strict=True)}


def _shift(inside: tuple[Tensor, Tensor], outside: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """How well entropies [B] and mutual informations [B] tell familiar rows from unseen ones."""
    (entropy, information), (unseen_entropy, unseen_information) = inside, outside
    return {
        "auroc_entropy": auroc(entropy, unseen_entropy),
        "auroc_mutual_information": auroc(information, unseen_information),
        "fpr95_entropy": fpr95(entropy, unseen_entropy),
        "fpr95_mutual_information": fpr95(information, unseen_information),
    }


def _shift_by(p: Tensor, unseen: Tensor, average: Average) -> Callable[[Tensor], dict[str, Tensor]]:
    """The shift scores of class probabilities [S, B, T, C] and [S, B', T, C] as a function of which draws to use."""
    parts = [torch.special.entr(q).sum((2, 3)) for q in (p, unseen)]  # [S, B]

    def unsure(q: Tensor, part: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        entropy = torch.special.entr(average(q, index)).sum((1, 2))
        return entropy, (entropy - average(part, index)).clamp_min(0)

    return lambda index: _shift(unsure(p, parts[0], index), unsure(unseen, parts[1], index))


def _unsure(draws: Draws) -> tuple[Tensor, Tensor]:
    """Entropy [B] and mutual information [B]; one draw has none, where quadrature would leave its rounding."""
    mixed, parts = draws.entropies()
    # Not clamped at 0: only ranks are used, and a quadrature's error, much the same in every row, would make ties.
    return mixed, mixed - parts if len(draws) > 1 else torch.zeros_like(mixed)
