"""SHAPING: what values of the objective count for, lower ones being better. To add one: a function and a line in TABLE.

Every function takes values [N, ...] of N perturbations, compares them along the first axis, and gives weights of the
same shape: a slope is the mean of weights times scores. They compose: `lambda values: z_score(values.log())`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, Diverged

Shaping = Callable[[Tensor], Tensor]


def replace_nonfinite(values: Tensor) -> Tensor:
    """Values with what is no number, or infinite, as bad as the worst of the others [N, ...].

    An error where nothing is left to compare with.
    """
    finite = values.isfinite()
    if bool(finite.all()):
        return values
    if not bool(finite.any(0).all()):
        raise Diverged(
            f"the objective was not finite at any of {len(values)} perturbations: start nearer to where it is, or from "
            "a smaller scale; where it was finite before, lower lr"
        )
    worst = values.masked_fill(~finite, -math.inf).amax(0)
    return torch.where(finite, values, worst)


def raw(values: Tensor) -> Tensor:
    """The values themselves."""
    return replace_nonfinite(values)


def subtract_mean_of_others(values: Tensor, group_size: int = 1) -> Tensor:
    """A baseline that leaves slopes unbiased: values less the mean of all others [N, ...].

    f_n − mean_{m ≠ n} f_m

    `group_size` neighbours that share their noise, mirror images, are not each other's others.
    Mnih & Rezende (2016), Variational inference for Monte Carlo objectives.
    """
    units = values.unflatten(0, (-1, group_size))
    mean_of_others = (values.sum(0) - units.sum(1)) / max(1, len(values) - group_size)
    return (units - mean_of_others.unsqueeze(1)).flatten(0, 1)


def z_score(values: Tensor) -> Tensor:
    """Values less their mean, over their standard deviation; zero where all are the same."""
    finite_values = replace_nonfinite(values)
    centred = finite_values - finite_values.mean(0)
    deviation = centred.square().mean(0).sqrt()
    return torch.where(deviation > 0, centred / deviation.clamp_min(torch.finfo(finite_values.dtype).tiny), 0.0)


def _rank_bounds(values: Tensor) -> tuple[Tensor, Tensor]:
    """How many values are lower, and how many not higher, for each of them [N, ...]: the places that equals share."""
    columns = replace_nonfinite(values).movedim(0, -1).contiguous()
    ordered = columns.sort(-1).values
    lower, upto = (torch.searchsorted(ordered, columns, right=right) for right in (False, True))
    return lower.movedim(-1, 0), upto.movedim(-1, 0)


def centred_ranks(values: Tensor) -> Tensor:
    """Places in order of value, from −½ for the best to ½ for the worst.

    rank/(N − 1) − ½;  equals share the mean of their ranks

    Salimans et al. (2017), Evolution strategies as a scalable alternative to reinforcement learning.
    """
    lower, upto = _rank_bounds(values)
    return (lower + upto - 1).to(values) / (2 * max(1, len(values) - 1)) - 0.5


def utilities(values: Tensor) -> Tensor:
    """Weights that fall with the logarithm of the place among the best half, and are equal for the rest.

    N u_k = N max(0, log(N/2 + 1) − log k) / Σⱼ max(0, log(N/2 + 1) − log j) − 1,  k = 1 for the best; given is −N u_k

    Wierstra et al. (2014), Natural evolution strategies.
    """
    count = len(values)
    utilities_by_rank = (math.log(count / 2 + 1) - torch.arange(1, count + 1, dtype=torch.float64).log()).clamp_min(0)
    cumulative_weights = torch.cat(
        [utilities_by_rank.new_zeros(1), (1 - count * utilities_by_rank / utilities_by_rank.sum()).cumsum(0)]
    ).to(values.device)
    lower, upto = _rank_bounds(values)
    # Equals share the mean of what their places are worth.
    return ((cumulative_weights[upto] - cumulative_weights[lower]) / (upto - lower)).to(values.dtype)


def utilities_of_worst(values: Tensor) -> Tensor:
    """The utilities of natural evolution strategies turned round: they tell the worst half apart, and the best not.

    N u_k,  k = 1 for the worst

    A search that goes by them moves away from what is bad. Every other shaping here is the same when turned round.
    Wierstra et al. (2014), Natural evolution strategies.
    """
    return -utilities(-replace_nonfinite(values))


TABLE: dict[str, Shaping] = {
    "raw": raw,
    "z_score": z_score,
    "centred_ranks": centred_ranks,
    "utilities": utilities,
    "utilities_of_worst": utilities_of_worst,
}


def require_shaping(shaping: Any) -> Shaping:
    """The shaping that was asked for, or what is wrong with it."""
    if not callable(shaping):
        names = ", ".join(TABLE)
        raise BadInput(f"shaping must be one of doxa.search.shaping ({names}) or a function of values; got {shaping!r}")
    function: Shaping = shaping
    return function
