"""How far what a belief predicts is from what a reference does: from the posterior itself, where that was sampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Estimate, Posterior
from doxa.errors import BadInput, require_whole
from doxa.judge.judgement import Judgement
from doxa.judge.metrics.half_sampling import half_sampling_error
from doxa.judge.metrics.labels import probability_function
from doxa.judge.metrics.wasserstein import wasserstein_2
from doxa.judge.strata import strata_of
from doxa.likelihoods import over_draws
from doxa.posteriors.delta import Delta
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.particles import Particles
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws

GROUPS = 32  # neighbouring draws stay together: those of one chain tell less than as many of several
BANDS = (0.5, 0.9)  # central ones, of the reference
STANDARD_ERRORS = 3
MIXED = 1.01  # the R-hat up to which chains agree


@dataclass(frozen=True)
class Functions:
    """Draws of a function: values [S, ...] and how much each counts."""

    values: Tensor
    weights: Tensor | None

    def some(self, index: Tensor) -> Functions:
        """Those of these indices."""
        return Functions(self.values[index], None if self.weights is None else self.weights[index])

    @property
    def mean(self) -> Tensor:
        return over_draws.mean(self.values, self.weights)

    @property
    def std(self) -> Tensor:
        return over_draws.std(self.values, self.weights)


Distances = Callable[[Functions, Functions], dict[str, Tensor]]


def against(belief: Belief, reference: Belief, x: Any, samples: int = 1000, seed: int = 0) -> Judgement:
    """How far a belief's predictions at x [B, ·] are from a reference's, as `doxa.references.hmc` makes one.

    Classification, of the averaged probabilities: `agreement`, the share of rows with the same likeliest class, and
    `total_variation`, ½ Σ_c |p(c | x) − p_ref(c | x)|. Regression, of the functions E[y | x, w] at each point by
    itself: `wasserstein_2` between their distributions, in the units of y and `_relative` to the reference's standard
    deviation; `std_ratio`, the geometric mean of the belief's standard deviation over the reference's; `mass_in_50` and
    `mass_in_90`, how much of the belief lies in the reference's central 50 % and 90 % bands: more says too narrow, less
    too wide or elsewhere. All are averages over x.

    `…_by_chance` is the same of two halves of the reference: a distance between finitely many draws is never 0, and one
    that is no larger says nothing. `samples` draws are taken of each. Errors are by halves of groups of neighbouring
    draws, so that chains need not be independent draws. Izmailov et al. (2021), What are Bayesian neural network
    posteriors really like?; Villani (2009), Optimal transport.
    """
    samples = require_whole("samples", samples, 4)
    draws, reference_draws = (b.predict(x, samples, seed) for b in (belief, reference))
    _require_comparable(draws, reference_draws)
    distances = _class_distances if belief.likelihood.discrete else _function_distances
    functions, reference_functions = (_functions(d) for d in (draws, reference_draws))
    strata = strata_of(belief.posterior, samples, len(draws))
    scores = _with_errors(distances, functions, reference_functions, _is_all_there(belief.posterior), strata)
    chance = _by_chance(distances, reference_functions)
    names = [name for name in scores if name in ("agreement", "total_variation") or name.startswith("wasserstein")]
    scores |= {f"{name}_by_chance": Estimate(float(chance[name])) for name in names}
    main = "total_variation" if belief.likelihood.discrete else "wasserstein_2"
    remarks = [_not_told_apart(scores, main), _not_mixed(reference)]
    rows = reference_draws.means.shape[1]
    return Judgement(scores, rows, len(draws), [remark for remark in remarks if remark is not None])


def _require_comparable(draws: Draws, reference: Draws) -> None:
    """Refuse beliefs about different things."""
    if draws.likelihood.discrete != reference.likelihood.discrete or draws.means.shape[1:] != reference.means.shape[1:]:
        raise BadInput(
            f"the belief predicts {tuple(draws.means.shape[1:])} by {type(draws.likelihood).__name__}, the reference "
            f"{tuple(reference.means.shape[1:])} by {type(reference.likelihood).__name__}: both must predict the same"
        )
    if len(reference) < 4:
        raise BadInput(
            f"the reference has {len(reference)} draws; a distribution needs at least 4, and better a thousand"
        )


def _functions(draws: Draws) -> Functions:
    """What a belief says: class probabilities [S, B, T, C], or locations [S, B, ·]."""
    means = draws.means
    if draws.likelihood.discrete:
        example = _labels_like(draws)
        to_probabilities, _ = probability_function(draws.likelihood, means, example)
        means = to_probabilities(means)
    return Functions(means.double().cpu(), None if draws.weights is None else draws.weights.cpu())


def _labels_like(draws: Draws) -> Tensor:
    """Labels of the shape that the likelihood's have: with an axis of classes fewer, where it has one."""
    axis = getattr(draws.likelihood, "class_axis", None)
    return draws.means[0] if axis is None else draws.means[0].select(axis, 0)


def _class_distances(belief: Functions, reference: Functions) -> dict[str, Tensor]:
    p, q = belief.mean, reference.mean
    return {
        "agreement": (p.argmax(-1) == q.argmax(-1)).double().mean(),
        "total_variation": 0.5 * (p - q).abs().sum(-1).mean(),
    }


def _function_distances(belief: Functions, reference: Functions) -> dict[str, Tensor]:
    distance = wasserstein_2(belief.values, reference.values, belief.weights, reference.weights)
    std, reference_std = belief.std, reference.std
    return {
        "wasserstein_2": distance.mean(),
        "wasserstein_2_relative": (distance / reference_std).mean(),
        "std_ratio": (std / reference_std).log().mean().exp(),
        **{f"mass_in_{100 * band:g}": _mass_in_band(belief, reference, band) for band in BANDS},
    }


def _mass_in_band(belief: Functions, reference: Functions, band: float) -> Tensor:
    """How much of a belief's functions lies in the reference's central band, ends included, on average over points."""
    ends = (0.5 - band / 2, 0.5 + band / 2)
    lower, upper = (over_draws.quantile(reference.values, q, reference.weights) for q in ends)
    inside = (lower <= belief.values) & (belief.values <= upper)
    return over_draws.mean(inside.double(), belief.weights).mean()


def _is_all_there(posterior: Posterior) -> bool:
    """Whether its draws are all that it believes, as those of points and particles; others stand for more of a kind."""
    if isinstance(posterior, Mixture):
        return all(_is_all_there(member) for member in posterior.members)
    return isinstance(posterior, Delta | Particles)


def _with_errors(
    distances: Distances, belief: Functions, reference: Functions, fixed: bool, strata: Tensor | None
) -> dict[str, Estimate]:
    """Distances of all draws, each with its error by halves of groups of them; `strata` [S] are those of the belief."""
    values, count = distances(belief, reference), len(reference.values)
    if fixed:
        group_of_draw, group_strata, groups = None, None, min(GROUPS, count)
    else:
        group_of_draw, group_strata = _groups(len(belief.values), count, strata)
        groups = int(group_of_draw.max()) + 1

    def of_groups(chosen: Tensor) -> Tensor:
        part = belief if group_of_draw is None else belief.some(torch.isin(group_of_draw, chosen).nonzero()[:, 0])
        other = reference.some(_members(chosen, count, groups))
        return torch.stack(list(distances(part, other).values()))

    errors = half_sampling_error(of_groups, groups, group_strata)
    return {name: Estimate(float(v), float(e)) for (name, v), e in zip(values.items(), errors, strict=True)}


def _even_groups(count: int, groups: int) -> Tensor:
    """The number of each draw's group of neighbours [S]."""
    return torch.arange(count) * groups // count


def _groups(count: int, most: int, strata: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The number of each draw's group [S], at `most` so many, and the stratum that each group is of: none spans two."""
    sizes = [count] if strata is None else torch.bincount(strata).tolist()
    counts = [min(size, max(2, GROUPS // len(sizes))) for size in sizes]
    if len(sizes) == 1 or sum(counts) > most:
        return _even_groups(count, min(GROUPS, count, most)), None
    starts = torch.tensor([0, *counts]).cumsum(0).tolist()
    parts = [start + _even_groups(size, n) for start, size, n in zip(starts[:-1], sizes, counts, strict=True)]
    return torch.cat(parts), torch.arange(len(sizes)).repeat_interleave(torch.tensor(counts))


def _by_chance(distances: Distances, reference: Functions) -> Mapping[str, Tensor]:
    """How far two halves of the reference are apart, every other group of its draws in each."""
    count = len(reference.values)
    groups = min(GROUPS, count) // 2 * 2
    halves = [reference.some(_members(torch.arange(first, groups, 2), count, groups)) for first in (0, 1)]
    return distances(*halves)


def _members(chosen: Tensor, count: int, groups: int) -> Tensor:
    """The indices of the draws in some of as many groups of neighbours."""
    return torch.isin(_even_groups(count, groups), chosen).nonzero()[:, 0]


def _not_told_apart(scores: Mapping[str, Estimate], name: str) -> str | None:
    """Whether a distance is no larger than what the reference's own draws are apart."""
    chance = scores[f"{name}_by_chance"].value
    if scores[name].value > chance + STANDARD_ERRORS * scores[name].error:
        return None
    return (
        f"Not told apart: halves of the reference are as far from each other ({chance:.3g}) as the belief is from it. "
        "More draws of both would see smaller distances."
    )


def _not_mixed(reference: Belief) -> str | None:
    """Whether the reference's own record says that its chains do not agree."""
    sampled = reference.record.settings.get("sampled")
    if not isinstance(sampled, Mapping):
        return None
    value = sampled.get("r_hat")
    if not isinstance(value, float):
        return (
            "No reference yet: its record tells no R-hat, so its chains did not move, predict nothing finite or were "
            "cut short. doxa.references.diagnose(reference, x) tells more."
        )
    if value <= MIXED:
        return None
    return (
        f"No reference yet: its chains disagree, R-hat is up to {value:.3f} where {MIXED} would do. Sample longer, or "
        "read the distances as those to what it has seen of the posterior."
    )
