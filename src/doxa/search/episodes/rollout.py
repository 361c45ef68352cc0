"""Whole episodes: what policies earn from the first observation to the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from doxa.errors import Diverged
from doxa.search.episodes.actions import Bound, choose_actions
from doxa.search.episodes.environments import EnvironmentSpec, VectorEnvironment
from doxa.search.episodes.observation_normalizer import (
    CLIP_AT,
    ObservationNormalizer,
    ObservationStatistics,
    empty_normalizer,
)
from doxa.search.episodes.policy_network import PolicyBatch, ignore_vmap_warnings


@dataclass(frozen=True)
class Rollout:
    """What came of episodes: returns [N, E], and the statistics of all observations, one a step."""

    returns: Tensor
    observation_stats: ObservationNormalizer

    @property
    def steps(self) -> int:
        return self.observation_stats.count

    def pack(self) -> Tensor:
        """As numbers that travel: what was seen, and the mean return of each policy."""
        stats = self.observation_stats
        count = stats.mean.new_tensor([stats.count])
        return torch.cat([count, stats.mean.flatten(), stats.squares.flatten(), self.returns.mean(1)])


def unpack_rollout(numbers: Tensor, shape: tuple[int, ...]) -> Rollout:
    """What came of episodes in an environment with such observations, with the mean of each policy's returns [N, 1]."""
    width = math.prod(shape)
    mean, squares = (part.view(shape) for part in numbers[1 : 1 + 2 * width].split(width))
    return Rollout(numbers[1 + 2 * width :, None], ObservationNormalizer(int(numbers[0]), mean, squares))


@torch.no_grad()
@ignore_vmap_warnings()
def rollout(
    policies: PolicyBatch,
    environments: VectorEnvironment,
    env_spec: EnvironmentSpec,
    normalizer: ObservationNormalizer | None,
    seeds: Sequence[Sequence[int]],
    bound: Bound,
) -> Rollout:
    """Let every policy play its episodes, with seeds [N][E], all of them side by side.

    R = Σ_t r_t

    `normalizer` stays as it is meanwhile; None shows observations as they are.
    """
    flat_seeds = [seed for policy_seeds in seeds for seed in policy_seeds]
    rows = np.arange(len(flat_seeds))
    returns = np.zeros(len(flat_seeds))
    statistics, normalize = (
        ObservationStatistics(normalizer or empty_normalizer(env_spec.observation_shape)),
        _normalize_with(normalizer),
    )
    observations = env_spec.encode_observations(environments.reset(flat_seeds))
    policies.continue_with(rows)
    for _ in range(env_spec.longest):
        statistics.update(observations)
        actions = choose_actions(policies.forward(normalize(observations)), env_spec.action_space, bound)
        next_observations, rewards, over = environments.step(rows, actions)
        returns[rows] += rewards
        if over.any():
            next_observations, rows = next_observations[~over], rows[~over]
            if not len(rows):
                break
            policies.continue_with(rows)
        observations = env_spec.encode_observations(next_observations)
    if not np.isfinite(returns).all():
        k = int(np.flatnonzero(~np.isfinite(returns))[0])
        raise Diverged(
            f"an episode of {env_spec.name} with seed {flat_seeds[k]} returned {returns[k]}: its rewards are not all "
            "finite"
        )
    if not np.isfinite(statistics.total).all():
        raise Diverged(f"an episode of {env_spec.name} showed an observation that is not finite")
    return Rollout(torch.from_numpy(returns).view(len(seeds), -1), statistics.normalizer)


def _normalize_with(normalizer: ObservationNormalizer | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """How observations look to the policies."""
    if normalizer is None:
        return lambda observations: observations
    mean, spread = normalizer.mean.numpy(), normalizer.spread.numpy()
    return lambda observations: np.clip((observations - mean) / spread, -CLIP_AT, CLIP_AT)
