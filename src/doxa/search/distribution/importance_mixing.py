"""Importance mixing: points of the last generation that the new distribution might as well have drawn are kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.random.philox import Stream, fill_normals, fill_uniform
from doxa.search.distribution.gaussian import Gaussian

# The numbers of the streams that decide what is kept, make new points, take them, and stand in for what was lost.
KEPT, MADE, TAKEN, LACKING = 2, 3, 4, 5
FEWEST = 16  # points that are made at a time


@dataclass(frozen=True)
class Memory:
    """A generation that is over: where its points were drawn from, its points [M, d] and what they were worth [M]."""

    at: Gaussian
    points: Tensor
    values: Tensor


@dataclass(frozen=True)
class Mixed:
    """A generation, old points before new ones: all of them [N, d], and the known values [M] of the first M."""

    points: Tensor
    values: Tensor

    @property
    def fresh(self) -> Tensor:
        """The points that nobody has evaluated yet."""
        return self.points[len(self.values) :]


def mixed(old: Memory, at: Gaussian, size: int, refresh: float, seed: Tensor, generation: int) -> Mixed:
    """So many points, `size`, each distributed as if drawn from where the search looks now.

    An old point is kept with probability min(1, (1 − a) p_new/p_old); new ones are drawn from p_new, and taken with
    probability max(a, 1 − p_old/p_new), until there are as many as before. Where some of the old ones were lost, as
    many are drawn from p_new outright: the others replace only what they came from.

    `refresh` is a, the least share of new points. Values of an objective that changes from call to call are kept too.
    Sun et al. (2009), Efficient natural evolution strategies.
    """
    many = len(old.points)
    ratio = (at.log_prob(old.points) - old.at.log_prob(old.points)).exp()
    keep = _uniform(many, seed, generation, KEPT, at.mean) < (1 - refresh) * ratio
    parts, found, tried = [old.points[keep]], int(keep.sum()), 0
    while found < many:
        step = max(FEWEST, 2 * (many - found))
        points = _drawn(at, step, seed, generation, MADE, start=tried)
        ratio = (old.at.log_prob(points) - at.log_prob(points)).exp()
        chances = _uniform(tried + step, seed, generation, TAKEN, at.mean)[tried:]
        taken = points[chances < (1 - ratio).clamp_min(refresh)][: many - found]
        parts.append(taken)
        found, tried = found + len(taken), tried + step
    parts.append(_drawn(at, size - many, seed, generation, LACKING))
    return Mixed(torch.cat(parts), old.values[keep])


def _drawn(at: Gaussian, many: int, seed: Tensor, generation: int, number: int, start: int = 0) -> Tensor:
    """Points of a stream, from a certain one on [many, d]."""
    width = len(at.mean)
    epsilon = at.mean.new_empty(1, many * width)
    fill_normals(epsilon, Stream(seed, generation, number), start=start * width)
    return at.mean + at.scales * epsilon.view(many, width)


def _uniform(many: int, seed: Tensor, generation: int, number: int, like: Tensor) -> Tensor:
    out = like.new_empty(1, many)
    fill_uniform(out, Stream(seed, generation, number))
    return out[0]
