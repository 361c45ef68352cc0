"""The judgement of a belief: every score its likelihood calls for, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.contracts import Estimate
from doxa.data.rows import as_pair, row_count
from doxa.judge import findings
from doxa.judge.judgement import Judgement
from doxa.judge.metrics.calibration import BINS, ece, ece_adaptive, ece_classwise
from doxa.judge.metrics.checks import require_bins, require_level
from doxa.judge.metrics.crps import crps_gaussian_mixture
from doxa.judge.metrics.half_sampling import half_sampling_error
from doxa.judge.metrics.labels import probability_function
from doxa.judge.metrics.predictive_density import gibbs_nll, lppd, lppd_error, standard_error
from doxa.judge.metrics.regression import coverage, rmse, width
from doxa.judge.metrics.scores import brier, error
from doxa.judge.metrics.shift import auroc, fpr95
from doxa.judge.recalibration import interval
from doxa.judge.strata import strata_of
from doxa.likelihoods import over_draws
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.predict.sweep import prototype_of

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
    at `level`, each interval as `levels` (`ChosenBelief.levels`) move it. Both: nll = −lppd and gibbs_nll, a row's
    labels or targets together. Inputs alone given as `out_of_distribution` add how well entropy and mutual information
    tell them apart. No Monte-Carlo error is computed (0) for coverage, width and regression's shift scores.
    Gelman et al. (2014); Guo et al. (2017); Gneiting & Raftery (2007).
    """
    require_bins(bins)
    require_level(level)
    x, y = as_pair(data, prototype_of(belief.posterior), "data")
    draws = belief.predict(x, samples, seed)
    y = belief.likelihood.check(draws.outputs[0], y)
    ood_draws = None if out_of_distribution is None else belief.predict(out_of_distribution, samples, seed)
    log_p, strata = draws.log_prob(y), strata_of(belief.posterior, samples, len(draws))
    density_scores = _density_scores(log_p, draws.weights, strata)
    if belief.likelihood.discrete:
        task_scores, remarks = _classification_scores(draws, y, ood_draws, bins, strata)
    else:
        task_scores, remarks = _regression_scores(draws, y, ood_draws, level, levels, strata)
    remarks = [
        findings.collapsed(belief),
        findings.too_few_samples(belief.posterior, log_p, draws.weights, strata),
        *remarks,
    ]
    all_scores = {**task_scores, **density_scores}
    if findings.has_all_distinct_draws(belief.posterior, len(draws)):
        # There are no other draws for a score to move with.
        all_scores = {name: Estimate(estimate.value) for name, estimate in all_scores.items()}
    return Judgement(all_scores, row_count(x), len(draws), [finding for finding in remarks if finding is not None])


def _density_scores(log_p: Tensor, weights: Tensor | None, strata: Tensor | None) -> Scores:
    value, lppd_spread = float(lppd(log_p, weights)), float(lppd_error(log_p, weights, strata))
    draw_nll = -log_p.double().mean(1)
    gibbs_error = float(standard_error(draw_nll, weights, strata)) if len(draw_nll) > 1 else 0.0
    return {
        "nll": Estimate(-value, lppd_spread),
        "lppd": Estimate(value, lppd_spread),
        "gibbs_nll": Estimate(float(gibbs_nll(log_p, weights)), gibbs_error),
    }


def _classification_scores(
    draws: Draws, y: Tensor, ood_draws: Draws | None, bins: int, strata: Tensor | None
) -> tuple[Scores, list[str | None]]:
    means = draws.means
    to_probabilities, labels = probability_function(draws.likelihood, means, y)
    p, flat_labels = to_probabilities(means), labels.flatten()
    entropies = torch.special.entr(p).sum((2, 3)).mean(1)  # [S]
    average = _average_over(draws)

    def scores(index: Tensor) -> dict[str, Tensor]:
        mean = average(p, index)
        mean_p = mean.flatten(0, 1)
        entropy = torch.special.entr(mean).sum((1, 2)).mean()
        return {
            "error": error(mean_p, flat_labels),
            "brier": brier(mean_p, flat_labels),
            "ece": ece(mean_p, flat_labels, bins),
            "ece_classwise": ece_classwise(mean_p, flat_labels, bins),
            "ece_adaptive": ece_adaptive(mean_p, flat_labels, bins),
            "entropy": entropy,
            "mutual_information": (entropy - average(entropies, index)).clamp_min(0),
        }

    estimates = _with_errors(scores, len(draws), strata)
    if ood_draws is not None:
        estimates |= _with_errors(
            _shift_scores_by_draws(p, to_probabilities(ood_draws.means), average), len(draws), strata
        )
    mean_p = over_draws.mean(p, draws.weights).flatten(0, 1)
    confidence, likeliest = mean_p.max(1)
    correct = likeliest == flat_labels
    remarks = [
        findings.constant(mean_p, F.one_hot(flat_labels, mean_p.shape[1])),
        findings.overconfident(confidence, correct),
        findings.underconfident(confidence, correct),
    ]
    return estimates, remarks


def _regression_scores(
    draws: Draws, y: Tensor, ood_draws: Draws | None, level: float, levels: Tensor | None, strata: Tensor | None
) -> tuple[Scores, list[str | None]]:
    means = draws.means
    variances = draws.likelihood.variance(draws.outputs, draws.parameters)
    average, deviation = _average_over(draws), _average_over(draws, over_draws.std)

    def scores(index: Tensor) -> dict[str, Tensor]:
        return {
            "rmse": rmse(average(means, index), y),
            "aleatoric": average(variances, index).sqrt().mean(),
            "epistemic": deviation(means, index).mean(),
        }

    estimates = _with_errors(scores, len(draws), strata)
    split = getattr(draws.likelihood, "split", None)  # a Gaussian's location and scale: for these the crps is closed
    if split is not None:
        location, scale = split(draws.outputs, draws.parameters)
        crps_draws = torch.linspace(0, len(draws) - 1, min(len(draws), CRPS_DRAWS)).round().long()
        crps_weights, crps_strata = (None if t is None else t[crps_draws] for t in (draws.weights, strata))
        estimates["crps"] = crps_gaussian_mixture(
            location[crps_draws], scale.expand_as(location)[crps_draws], y, crps_weights, crps_strata
        )
    for interval_level in sorted({*LEVELS, level}):
        lower, upper = interval(draws, interval_level, levels)
        estimates[f"coverage_{100 * interval_level:g}"] = Estimate(float(coverage(y, lower, upper)))
        if interval_level == level:
            estimates[f"width_{100 * interval_level:g}"] = Estimate(float(width(lower, upper)))
    if ood_draws is not None:
        estimates |= {
            k: Estimate(float(v))
            for k, v in _shift_scores(_entropy_and_information(draws), _entropy_and_information(ood_draws)).items()
        }
    covered = estimates[f"coverage_{100 * level:g}"].value
    remarks = [
        findings.constant(draws.mean.reshape(len(y), -1), y.reshape(len(y), -1)),
        findings.too_narrow(covered, level, y.numel()),
        findings.too_wide(covered, level, y.numel()),
    ]
    return estimates, remarks


def _average_over(draws: Draws, average: Callable[..., Tensor] = over_draws.mean) -> Average:
    """An average of values [S, ·] over some of the draws, by their weights."""
    weights = draws.weights
    return lambda values, index: average(values[index], None if weights is None else weights[index])


def _with_errors(scores: Callable[[Tensor], dict[str, Tensor]], draws: int, strata: Tensor | None) -> Scores:
    """Scores of all draws, each with its error by half sampling; `scores` takes the indices of draws to use."""
    values = scores(torch.arange(draws))
    errors = half_sampling_error(lambda index: torch.stack(list(scores(index).values())).double(), draws, strata)
    return {name: Estimate(float(v), float(e)) for (name, v), e in zip(values.items(), errors, strict=True)}


def _shift_scores(inside: tuple[Tensor, Tensor], outside: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """How well entropies [B] and mutual informations [B] tell familiar rows from unseen ones."""
    (entropy, information), (unseen_entropy, unseen_information) = inside, outside
    return {
        "auroc_entropy": auroc(entropy, unseen_entropy),
        "auroc_mutual_information": auroc(information, unseen_information),
        "fpr95_entropy": fpr95(entropy, unseen_entropy),
        "fpr95_mutual_information": fpr95(information, unseen_information),
    }


def _shift_scores_by_draws(p: Tensor, outside_p: Tensor, average: Average) -> Callable[[Tensor], dict[str, Tensor]]:
    """The shift scores of class probabilities [S, B, T, C] and [S, B', T, C] as a function of which draws to use."""
    draw_entropies = [torch.special.entr(q).sum((2, 3)) for q in (p, outside_p)]  # [S, B]

    def entropy_and_information(q: Tensor, draw_entropy: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        entropy = torch.special.entr(average(q, index)).sum((1, 2))
        return entropy, (entropy - average(draw_entropy, index)).clamp_min(0)

    return lambda index: _shift_scores(
        entropy_and_information(p, draw_entropies[0], index),
        entropy_and_information(outside_p, draw_entropies[1], index),
    )


def _entropy_and_information(draws: Draws) -> tuple[Tensor, Tensor]:
    """Entropy [B] and mutual information [B]; one draw has none, where quadrature would leave its rounding."""
    entropy, expected_entropy = draws.entropies()
    # Not clamped at 0: only ranks are used, and a quadrature's error, much the same in every row, would make ties.
    return entropy, entropy - expected_entropy if len(draws) > 1 else torch.zeros_like(entropy)
