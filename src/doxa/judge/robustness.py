"""Skill against the strength of an attack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from doxa.data.rows import as_pair
from doxa.errors import BadInput
from doxa.judge.attacks.fgsm import fgsm
from doxa.judge.summary import skill_and_nll
from doxa.predict.belief import Belief
from doxa.predict.sweep import prototype_of


def robustness(
    belief: Belief,
    data: Any,
    radii: Sequence[float],
    source: Belief | None = None,
    attack: Callable[..., Tensor] = fgsm,
    samples: int = 50,
    seed: int = 0,
    low: float = 0.0,
    high: float = 1.0,
) -> dict[str, list[float]]:
    """What remains of a belief's skill as its inputs are attacked ever harder.

    accuracy(radius) = (1/B) Σᵢ [argmax_c p(c | x'ᵢ) = yᵢ],  x' = attack(source, x, y, radius)

    The gradients are those of `source`: the belief itself (a white-box attack), or another (a transfer attack).
    Columns of equal length: `radius`, then `accuracy`, `error` and `nll`, or `rmse` and `nll`.
    data (x [B, ·], y [B, ·]).
    Goodfellow, Shlens & Szegedy (2015); Papernot et al. (2016), Transferability in machine learning.
    """
    x, y = as_pair(data, prototype_of(belief.posterior), "data")
    if len(radii) == 0:
        raise BadInput("radii is empty; give at least one, such as 0.0 for the clean inputs")
    rows = []
    for radius in radii:
        attacked = attack(source or belief, x, y, radius, samples=samples, seed=seed, low=low, high=high)
        skill = skill_and_nll(belief.predict(attacked, samples, seed), y)
        accuracy = {"accuracy": 1 - skill["error"]} if "error" in skill else {}
        rows.append({"radius": float(radius), **accuracy, **skill})
    return {name: [row[name] for row in rows] for name in rows[0]}
