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


def finite(values: Tensor) -> Tensor:
    """Values with what is no number, or infinite, as bad as the worst of the others [N, ...].

    An error where nothing is left to compare with.
    """
    known = values.isfinite()
    if bool(known.all()):
        return values
    if not bool(known.any(0).all()):
        raise Diverged(
            f"the objective was not finite at any of {len(values)} perturbations: start nearer to where it is, or from "
            "a smaller scale; where it was finite before, lower lr"
        )
    worst = values.masked_fill(~known, -math.inf).amax(0)
    return torch.where(known, values, worst)


def raw(values: Tensor) -> Tensor:
    """The values themselves."""
    return finite(values)


def against_others(values: Tensor, together: int = 1) -> Tensor:
    """A baseline that leaves slopes unbiased: values less the mean of all others [N, ...].

    f_n − mean_{m ≠ n} f_m

    `together` neighbours that share their noise, mirror images, are not each other's others.
    Mnih & Rezende (2016), Variational inference for Monte Carlo objectives.
    """
    units = values.unflatten(0, (-1, together))
    others = (values.sum(0) - units.sum(1)) / max(1, len(values) - together)
    return (units - others.unsqueeze(1)).flatten(0, 1)


def z_score(values: Tensor) -> Tensor:
    """Values less their mean, over their standard deviation; zero where all are the same."""
    known = finite(values)
    away = known - known.mean(0)
    deviation = away.square().mean(0).sqrt()
    return torch.where(deviation > 0, away / deviation.clamp_min(torch.finfo(known.dtype).tiny), 0.0)


def _places(values: Tensor) -> tuple[Tensor, Tensor]:
    """How many values are lower, and how many not higher, for each of them [N, ...]: the places that equals share."""
    columns = finite(values).movedim(0, -1).contiguous()
    ordered = columns.sort(-1).values
    lower, upto = (torch.searchsorted(ordered, columns, right=right) for right in (False, True))
    return lower.movedim(-1, 0), upto.movedim(-1, 0)


def centred_ranks(values: Tensor) -> Tensor:
    """Places in order of value, from −½ for the best to ½ for the worst.

    rank/(N − 1) − ½;  equals share the mean of their ranks

    Salimans et al. (2017), Evolution strategies as a scalable alternative to reinforcement learning.
    """
    lower, upto = _places(values)
    return (lower + upto - 1).to(values) / (2 * max(1, len(values) - 1)) - 0.5


def utilities(values: Tensor) -> Tensor:
    """Weights that fall with the logarithm of the place among the best half, and are equal for the rest.

    N u_k = N max(0, log(N/2 + 1) − log k) / Σⱼ max(0, log(N/2 + 1) − log j) − 1,  k = 1 for the best; given is −N u_k

    Wierstra et al. (2014), Natural evolution strategies.
    """
    many = len(values)
    top = (math.log(many / 2 + 1) - torch.arange(1, many + 1, dtype=torch.float64).log()).clamp_min(0)
    upto_place = torch.cat([top.new_zeros(1), (1 - many * top / top.sum()).cumsum(0)]).to(values.device)
    lower, upto = _places(values)
    # Equals share the mean of what their places are worth.
    return ((upto_place[upto] - upto_place[lower]) / (upto - lower)).to(values.dtype)


TABLE: dict[str, Shaping] = {
    "raw": raw,
    "z_score": z_score,
    "centred_ranks": centred_ranks,
    "utilities": utilities,
}


def shaping_of(given: Any) -> Shaping:
    """The shaping that was asked for, or what is wrong with it."""
    if not callable(given):
        names = ", ".join(TABLE)
        raise BadInput(f"shaping must be one of doxa.search.shaping ({names}) or a function of values; got {given!r}")
    found: Shaping = given
    return found
