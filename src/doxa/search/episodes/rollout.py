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
from doxa.search.episodes.actions import Bound, chosen
from doxa.search.episodes.actors import Actors, quiet
from doxa.search.episodes.sight import FAR, Sight, Watcher, blank
from doxa.search.episodes.stage import Scenery, Stage


@dataclass(frozen=True)
class Played:
    """What came of episodes: returns [N, E], and the statistics of all observations, one a step."""

    returns: Tensor
    seen: Sight

    @property
    def steps(self) -> int:
        return self.seen.count

    def packed(self) -> Tensor:
        """As numbers that travel: what was seen, and the mean return of each policy."""
        seen = self.seen
        count = seen.mean.new_tensor([seen.count])
        return torch.cat([count, seen.mean.flatten(), seen.squares.flatten(), self.returns.mean(1)])


def unpacked(numbers: Tensor, shape: tuple[int, ...]) -> Played:
    """What came of episodes in an environment with such observations, with the mean of each policy's returns [N, 1]."""
    width = math.prod(shape)
    mean, squares = (part.view(shape) for part in numbers[1 : 1 + 2 * width].split(width))
    return Played(numbers[1 + 2 * width :, None], Sight(int(numbers[0]), mean, squares))


@torch.no_grad()
@quiet()
def rollout(
    actors: Actors, stage: Stage, scenery: Scenery, sight: Sight | None, seeds: Sequence[Sequence[int]], bound: Bound
) -> Played:
    """Let every policy play its episodes, with seeds [N][E], all of them side by side.

    R = Σ_t r_t

    `sight` stays as it is meanwhile; None shows observations as they are.
    """
    flat = [seed for own in seeds for seed in own]
    rows = np.arange(len(flat))
    returns = np.zeros(len(flat))
    watcher, shown = Watcher(sight or blank(scenery.shape)), _shown(sight)
    observations = scenery.plain(stage.reset(flat))
    actors.keep(rows)
    for _ in range(scenery.longest):
        watcher.see(observations)
        actions = chosen(actors.outputs(shown(observations)), scenery.actions, bound)
        came, rewards, over = stage.step(rows, actions)
        returns[rows] += rewards
        if over.any():
            came, rows = came[~over], rows[~over]
            if not len(rows):
                break
            actors.keep(rows)
        observations = scenery.plain(came)
    if not np.isfinite(returns).all():
        k = int(np.flatnonzero(~np.isfinite(returns))[0])
        raise Diverged(
            f"an episode of {scenery.name} with seed {flat[k]} returned {returns[k]}: its rewards are not all finite"
        )
    if not np.isfinite(watcher.total).all():
        raise Diverged(f"an episode of {scenery.name} showed an observation that is not finite")
    return Played(torch.from_numpy(returns).view(len(seeds), -1), watcher.sight)


def _shown(sight: Sight | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """How observations look to the policies."""
    if sight is None:
        return lambda observations: observations
    mean, spread = sight.mean.numpy(), sight.spread.numpy()
    return lambda observations: np.clip((observations - mean) / spread, -FAR, FAR)
