"""The Monte-Carlo error of any function of the draws."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from doxa.random.keys import generator

SPLITS = 16  # tells a standard error to about a fifth of itself, which is all that is asked of one


def half_sampling_error(statistics: Callable[[Tensor], Tensor], draws: int, strata: Tensor | None = None) -> Tensor:
    """The standard error of statistics of S draws, from how they differ between halves of the draws.

    error² = mean over splits of h (S − h) / S² · (θ(half) − θ(other half))²,  h = ⌊S/2⌋

    Exact for means. A 0/1 error jumps as a row's likeliest class changes: leaving out one draw at a time (the
    jackknife) is too fine a step for jumps and overstates their error up to S^¼-fold; halves understate it by a
    sixth at most. `statistics` maps indices of draws to a vector [K]; the errors [K] come back, 0 for one draw,
    which cannot tell. With `strata` [S], the number of the distribution that each draw is of, every stratum of two or
    more draws is halved, so that how far they lie apart does not count.
    McCarthy (1969), Pseudo-replication: half samples; Shao & Wu (1989), A general theory for jackknife variance.
    """
    groups = _groups(draws, strata)
    sizes = {len(group) for group in groups}
    half = min(sizes) // 2
    if half == 0:
        return torch.zeros_like(statistics(torch.arange(draws)))
    # Where strata differ in size both halves take as many of each, or how far strata lie apart would count: of an odd
    # number a draw is left out at random, which makes errors no smaller.
    equal = len(sizes) == 1
    factor = half * (min(sizes) - half) / min(sizes) ** 2 if equal else 0.25
    permutations = generator((draws, "half sampling"))
    squares = []
    for _ in range(SPLITS):
        orders = [group[torch.randperm(len(group), generator=permutations)] for group in groups]
        first = torch.cat([order[: len(order) // 2] for order in orders])
        ends = [len(order) if equal else len(order) // 2 * 2 for order in orders]
        other = torch.cat([order[len(order) // 2 : end] for order, end in zip(orders, ends, strict=True)])
        squares.append((statistics(first) - statistics(other)).square())
    return (torch.stack(squares).mean(0) * factor).sqrt()


def _groups(draws: int, strata: Tensor | None) -> list[Tensor]:
    """The indices of the draws of each stratum, or of all together where one of them has a single draw."""
    if strata is None or int(torch.bincount(strata).min()) < 2:
        return [torch.arange(draws)]
    return [(strata == k).nonzero().flatten() for k in range(int(strata.max()) + 1)]
