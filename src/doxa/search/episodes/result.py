"""What a search for a policy comes to."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from doxa.errors import BadInput, whole
from doxa.layout import mode
from doxa.randomness import Key, seed_of
from doxa.search.episodes.actions import Bound, chosen
from doxa.search.episodes.actors import Actors, Body
from doxa.search.episodes.rollout import rollout
from doxa.search.episodes.sight import Normalise, Seeing, Sight
from doxa.search.episodes.stage import Scenery

WHICH = ("best", "mean")


@dataclass(frozen=True)
class Weights:
    """A net's weights [P], and the sight that they go with."""

    flat: Tensor
    sight: Sight | None


@dataclass(frozen=True)
class Policy:
    """What a search came to: `best`, the mean with which episodes went best, `mean`, the last one, and how it went.

    `best` has the highest mean return of the last generations' episodes, or has passed a trial: then `solved` is True.
    """

    best: Weights
    mean: Weights
    scale: Tensor  # [P]
    solved: bool
    trajectory: list[dict[str, float]] = field(repr=False)
    scenery: Scenery = field(repr=False)
    body: Body = field(repr=False)
    bound: Bound = field(repr=False)

    def play(self, episodes: int = 100, seed: int = 0, which: str = "best") -> Tensor:
        """The returns of new episodes [episodes], played by the best or the mean weights."""
        seeds = episode_seeds((seed, "play"), whole("episodes", episodes))
        return played(self.body, self.scenery, self._of(which), seeds, self.bound)

    def act(self, observation: Any, which: str = "best") -> Any:
        """What to do, as the environment's `step` takes it, on seeing one observation."""
        if self.body.remembers:
            raise BadInput("what this policy does depends on what it has seen before: ask a player, policy.player()")
        return self.player(which).act(observation)

    def player(self, which: str = "best") -> Player:
        """One who acts, observation by observation, and remembers what it has seen of its episode."""
        return Player(self, which)

    def module(self, which: str = "best") -> nn.Module:
        """A plain torch module from observations [B, ...] to outputs [B, K]: sight, then the net with its weights.

        The highest output is the discrete action; continuous ones are outputs within their bounds. One that remembers
        takes its last state beside the observations, none as an episode begins, and gives outputs and a state.
        """
        own = self._of(which)
        net = copy.deepcopy(self.body.net)
        net.eval()
        net.load_state_dict({**self.body.layout.weights(own.flat), **self.body.buffers}, strict=False)
        if own.sight is None:
            return net
        if self.body.remembers:
            return Seeing(own.sight, net, own.flat)
        return nn.Sequential(Normalise(own.sight, own.flat), net)

    def _of(self, which: str) -> Weights:
        if which not in WHICH:
            raise BadInput(f'which must be "best" or "mean"; got {which!r}')
        return self.best if which == "best" else self.mean


class Player:
    """A policy in an episode: `act` on every observation, and `begin` before the first of the next episode."""

    def __init__(self, policy: Policy, which: str) -> None:
        self.policy, self.net = policy, policy.module(which)
        self.state: tuple[Any, ...] = ()

    def begin(self) -> None:
        """Forget."""
        self.state = ()

    @torch.no_grad()
    def act(self, observation: Any) -> Any:
        """What to do, as the environment's `step` takes it, on seeing one observation."""
        own = self.policy
        shown = own.scenery.plain(np.asarray(observation)[None])
        came = self.net(torch.from_numpy(shown).to(own.body.start), *self.state)
        if own.body.remembers:
            came, self.state = came[0], came[1:]
        action = chosen(came.cpu(), own.scenery.actions, own.bound)[0]
        return action.item() if action.ndim == 0 else action


def played(body: Body, scenery: Scenery, weights: Weights, seeds: Sequence[int], bound: Bound) -> Tensor:
    """The returns of one policy's episodes [E]."""
    actors = Actors(body, weights.flat[None], len(seeds))
    with mode(body.net, training=False):
        return rollout(actors, scenery.apart, scenery, weights.sight, [seeds], bound).returns[0]


def episode_seeds(key: Key, many: int) -> list[int]:
    """Seeds of episodes, each of 32 bits."""
    return [seed_of((*key, "episode", k)) >> 31 for k in range(many)]
