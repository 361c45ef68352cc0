"""Importance mixing: points of the last generation that the new distribution might as well have drawn are kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.random import streams
from doxa.random.philox import Stream, fill_normals, fill_uniform
from doxa.search.distribution.gaussian import SearchDistribution

MIN_PROPOSALS = 16  # points that are made at a time


@dataclass(frozen=True)
class PreviousGeneration:
    """A generation that is over: where its points were drawn from, its points [M, d] and what they were worth [M]."""

    distribution: SearchDistribution
    points: Tensor
    values: Tensor


@dataclass(frozen=True)
class MixedGeneration:
    """A generation, old points before new ones: all of them [N, d], and the known values [M] of the first M."""

    points: Tensor
    values: Tensor

    @property
    def new_points(self) -> Tensor:
        """The points that nobody has evaluated yet."""
        return self.points[len(self.values) :]


def mix_generations(
    previous: PreviousGeneration,
    distribution: SearchDistribution,
    size: int,
    refresh: float,
    seed: Tensor,
    generation: int,
) -> MixedGeneration:
    """So many points, `size`, each distributed as if drawn from where the search looks now.

    An old point is kept with probability min(1, (1 − a) p_new/p_old); new ones are drawn from p_new, and taken with
    probability max(a, 1 − p_old/p_new), until there are as many as before. Where some of the old ones were lost, as
    many are drawn from p_new outright: the others replace only what they came from.

    `refresh` is a, the least share of new points. Values of an objective that changes from call to call are kept too.
    Sun et al. (2009), Efficient natural evolution strategies.
    """
    previous_count = len(previous.points)
    ratio = (distribution.log_prob(previous.points) - previous.distribution.log_prob(previous.points)).exp()
    keep = (
        _draw_uniform(previous_count, seed, generation, streams.SEARCH_KEEP, distribution.mean) < (1 - refresh) * ratio
    )
    parts, accepted_count, proposed_count = [previous.points[keep]], int(keep.sum()), 0
    while accepted_count < previous_count:
        step = max(MIN_PROPOSALS, 2 * (previous_count - accepted_count))
        points = _draw_points(distribution, step, seed, generation, streams.SEARCH_PROPOSE, start=proposed_count)
        ratio = (previous.distribution.log_prob(points) - distribution.log_prob(points)).exp()
        uniforms = _draw_uniform(proposed_count + step, seed, generation, streams.SEARCH_ACCEPT, distribution.mean)[
            proposed_count:
        ]
        accepted_points = points[uniforms < (1 - ratio).clamp_min(refresh)][: previous_count - accepted_count]
        parts.append(accepted_points)
        accepted_count, proposed_count = accepted_count + len(accepted_points), proposed_count + step
    parts.append(_draw_points(distribution, size - previous_count, seed, generation, streams.SEARCH_REFILL))
    return MixedGeneration(torch.cat(parts), previous.values[keep])


def _draw_points(
    distribution: SearchDistribution, count: int, seed: Tensor, generation: int, stream_number: int, start: int = 0
) -> Tensor:
    """Points of a stream, from a certain one on [many, d]."""
    width = len(distribution.mean)
    epsilon = distribution.mean.new_empty(1, count * width)
    fill_normals(epsilon, Stream(seed, generation, stream_number), start=start * width)
    return distribution.mean + distribution.scales * epsilon.view(count, width)


def _draw_uniform(count: int, seed: Tensor, generation: int, stream_number: int, like: Tensor) -> Tensor:
    out = like.new_empty(1, count)
    fill_uniform(out, Stream(seed, generation, stream_number))
    return out[0]
