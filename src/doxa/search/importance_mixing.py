"""Importance mixing: points of the last generation that the new distribution might as well have drawn are kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.philox import Stream, fill_normals, fill_uniform
from doxa.search.gaussian import Gaussian

KEPT, MADE, TAKEN = 2, 3, 4  # the numbers of the streams that decide what is kept, make new points, and take them
FEWEST = 16  # points that are made at a time


@dataclass(frozen=True)
class Memory:
    """A generation that is over: where its points were drawn from, the points [N, d] and what they were worth [N]."""

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


def mixed(old: Memory, at: Gaussian, refresh: float, seed: Tensor, generation: int) -> Mixed:
    """As many points as before, each distributed as if drawn from where the search looks now.

    An old point is kept with probability min(1, (1 − a) p_new/p_old); new ones are drawn from p_new, and taken with
    probability max(a, 1 − p_old/p_new), until there are enough.

    `refresh` is a, the least share of new points. Values of an objective that changes from call to call are kept too.
    Sun et al. (2009), Efficient natural evolution strategies.
    """
    many, width = old.points.shape
    ratio = (at.log_prob(old.points) - old.at.log_prob(old.points)).exp()
    keep = _uniform(many, seed, generation, KEPT, at.mean) < (1 - refresh) * ratio
    parts, found, tried = [old.points[keep]], int(keep.sum()), 0
    while found < many:
        step = max(FEWEST, 2 * (many - found))
        epsilon = at.mean.new_empty(1, step * width)
        fill_normals(epsilon, Stream(seed, generation, MADE), start=tried * width)
        points = at.mean + at.scales * epsilon.view(step, width)
        ratio = (old.at.log_prob(points) - at.log_prob(points)).exp()
        chances = _uniform(tried + step, seed, generation, TAKEN, at.mean)[tried:]
        taken = points[chances < (1 - ratio).clamp_min(refresh)][: many - found]
        parts.append(taken)
        found, tried = found + len(taken), tried + step
    return Mixed(torch.cat(parts), old.values[keep])


def _uniform(many: int, seed: Tensor, generation: int, number: int, like: Tensor) -> Tensor:
    out = like.new_empty(1, many)
    fill_uniform(out, Stream(seed, generation, number))
    return out[0]
