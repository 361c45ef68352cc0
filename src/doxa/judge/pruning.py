"""How much of a belief can go, and where it goes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from doxa.data.rows import as_pair
from doxa.errors import BadInput
from doxa.judge.summary import skill_and_nll
from doxa.predict.belief import Belief
from doxa.predict.sweep import prototype_of
from doxa.weights.layout import Layout

FRACTIONS = (0.0, 0.5, 0.75, 0.9, 0.95, 0.98)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LARGEST = np.finfo(np.float64).max
Ratios = NDArray[np.float64]
DECIBELS = (-40.0, 30.0)  # what the histograms span: |mean| from a ten-thousandth to a thousand scales


def pruning_curve(
    belief: Belief,
    data: Any,
    fractions: Sequence[float] = FRACTIONS,
    per_layer: bool = False,
    refresh: Any = None,
    samples: int = 50,
    seed: int = 0,
) -> dict[str, list[float]]:
    """What remains of a belief's skill as its least relevant weights are set to zero, mean and scale.

    relevance = |mean| / scale, ranked over the whole net or within each tensor (`per_layer`)

    Columns of equal length: `fraction`, then `error` or `rmse`, then `nll`; the same draws for every fraction. Training
    inputs as `refresh` renew BatchNorm's statistics. data (x [B, ·], y [B, ·]).
    Graves (2011), Practical variational inference for neural networks; Blundell et al. (2015).
    """
    x, y = as_pair(data, prototype_of(belief.posterior), "data")
    if len(fractions) == 0:
        raise BadInput("fractions is empty; give at least one fraction between 0 and 1 to prune")
    rows = []
    for fraction in fractions:
        pruned = belief.prune(fraction, per_layer=per_layer, refresh=refresh)
        rows.append({"fraction": float(fraction), **skill_and_nll(pruned.predict(x, samples, seed), y)})
    return {name: [row[name] for row in rows] for name in rows[0]}


def pruned_shares(belief: Belief, fractions: Sequence[float] = FRACTIONS) -> dict[str, list[float]]:
    """The share of each weight tensor that goes at each fraction of the whole net's ranking.

    share = #{weights of the tensor among the least relevant} / #{weights of the tensor}

    One column for each tensor of two or more axes, after the column `fraction`.
    Blundell et al. (2015), Weight uncertainty in neural networks, section 5.1.
    """
    columns: dict[str, list[float]] = {"fraction": [float(f) for f in fractions]}
    keep_masks = [belief.kept(fraction) for fraction in fractions]
    for slot in belief.layout.random_slots:
        if len(slot.shape) > 1:
            columns[slot.name] = [1 - float(keep_mask[slot.span].double().mean()) for keep_mask in keep_masks]
    return columns


def signal_to_noise_quantiles(belief: Belief, quantiles: Sequence[float] = QUANTILES) -> dict[str, dict[float, float]]:
    """Quantiles of |mean| / scale in each random tensor: name -> quantile -> value.

    A weight that was pruned has no signal, 0; one that is certain has no noise: infinite.
    Blundell et al. (2015), Weight uncertainty in neural networks, table 3.
    """
    ranks = list(quantiles)
    return {
        name: dict(zip(ranks, _quantiles(_finite_ratios(ratio), ranks), strict=True))
        for name, ratio in belief.signal_to_noise().items()
    }


def _quantiles(ratios: Ratios, ranks: Sequence[float]) -> list[float]:
    """Quantiles between which an infinity may lie, which cannot be interpolated."""
    is_infinite = np.quantile((ratios == LARGEST).astype(np.float64), ranks) > 0
    return np.where(is_infinite, np.inf, np.quantile(ratios, ranks)).tolist()


def signal_to_noise_histogram(belief: Belief, bins: int = 70) -> tuple[list[float], dict[str, list[int]]]:
    """How many weights of each random tensor have which signal-to-noise ratio, in decibels.

    dB = 10 log₁₀(|mean| / scale)

    The edges [bins + 1], and counts [bins] by name; what lies beyond the edges counts in the outermost bins.
    Blundell et al. (2015), Weight uncertainty in neural networks, figure 5.
    """
    return _histogram(belief.signal_to_noise(), bins)


def relevance_histogram(belief: Belief, bins: int = 70) -> tuple[list[float], dict[str, list[int]]]:
    """The same of what pruning ranks by: for a mixture the root mean square of its members' ratios, not its own.

    Members that settled apart make a mixture's own scale a distance between nets, which is no noise within one.
    """
    return _histogram(Layout(belief.layout.random_slots).views(belief.posterior.relevance), bins)


def _histogram(ratios: Mapping[str, Tensor], bins: int) -> tuple[list[float], dict[str, list[int]]]:
    edges = np.linspace(*DECIBELS, bins + 1)
    counts = {}
    for name, ratio in ratios.items():
        with np.errstate(divide="ignore"):
            decibels = 10 * np.log10(_finite_ratios(ratio))
        counts[name] = np.histogram(np.clip(decibels, *DECIBELS), edges)[0].tolist()
    return edges.tolist(), counts


def _finite_ratios(ratio: Tensor) -> Ratios:
    """Ratios as float64, 0/0 as 0 and a certain weight's infinite one as the largest number there is."""
    return ratio.flatten().double().nan_to_num(nan=0.0).cpu().numpy()
