"""What a search for a policy comes to."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from doxa.errors import BadInput, BrokenFile, DoxaError, whole
from doxa.random.keys import Key, seed_of
from doxa.search.episodes.actions import TABLE as BOUNDS
from doxa.search.episodes.actions import Bound, chosen
from doxa.search.episodes.actors import Actors, Body
from doxa.search.episodes.rollout import rollout
from doxa.search.episodes.sight import Normalise, Seeing, Sight
from doxa.search.episodes.stage import Environment, Scenery
from doxa.storage import sealed
from doxa.weights.layout import mode
from doxa.weights.saved_layout import decode_layout, encode_layout, require_same_net

KIND = "doxa.policy"
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

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy to one file: safetensors with a JSON header and a SHA-256 over both."""
        scenery, body = self.scenery, self.body
        tensors: dict[str, Tensor] = {"scale": self.scale}
        counts: dict[str, int | None] = {}
        for name in WHICH:
            own = self._of(name)
            tensors[name] = own.flat
            counts[name] = None if own.sight is None else own.sight.count
            if own.sight is not None:
                tensors |= {f"{name}.seen": own.sight.mean, f"{name}.squares": own.sight.squares}
        tensors |= {f"buffers.{k}": b for k, b in body.buffers.items()}
        header = {
            "layout": encode_layout(body.layout),
            "environment": scenery.environment if isinstance(scenery.environment, str) else None,
            "longest": scenery.longest,
            "bound": next((name for name, known in BOUNDS.items() if known is self.bound), None),
            "solved": self.solved,
            "trajectory": self.trajectory,
            "counts": counts,
        }
        sealed.write(path, KIND, header, tensors)

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


def load_policy(
    path: str | PathLike[str], net: nn.Module, environment: Environment | None = None, bound: Bound | None = None
) -> Policy:
    """The policy in a file, for the net it was searched with; nothing in the file is ever executed.

    An environment that was made by a function, and a bound that is not of doxa.search.episodes, must be given again.
    """
    header, tensors = sealed.read(path, KIND)
    try:
        layout = decode_layout(header["layout"])
        buffers = {k.removeprefix("buffers."): t for k, t in tensors.items() if k.startswith("buffers.")}
        named, longest, limits = header["environment"], int(header["longest"]), header["bound"]
        device = next((p.device for p in net.parameters()), torch.device("cpu"))
        own: dict[str, Any] = {
            **{name: _weights(name, header["counts"][name], tensors, device) for name in WHICH},
            "scale": tensors["scale"].to(device),
            "solved": bool(header["solved"]),
            "trajectory": list(header["trajectory"]),
        }
        if any(t.shape != (layout.size,) for t in (own["best"].flat, own["mean"].flat, own["scale"])):
            raise ValueError("the weights do not fit the layout")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DoxaError):
            raise
        raise BrokenFile(f"{path} is a Doxa file whose contents make no sense: {error!r}") from None
    require_same_net(path, layout, buffers, net)
    if environment is None and not isinstance(named, str):
        raise BadInput(f"the policy in {path} acts in an environment that a function made: pass environment=")
    if environment is None and ":" in named:  # gymnasium would import what stands before it
        raise BadInput(
            f"the environment {named!r} of the policy in {path} names a module, and no file may have one imported: "
            f"pass environment={named!r}, if you trust it"
        )
    if bound is None and limits not in BOUNDS:
        raise BadInput(f"the policy in {path} bounds its actions in a way of its own: pass bound=")
    scenery = Scenery(named if environment is None else environment, longest)
    with torch.no_grad(), mode(net, training=False):
        body = Body(net, scenery.shape, scenery.outputs)
    # Which weights were searched is the file's to say, whatever is frozen in the net that it is loaded for.
    body.layout, body.start = layout, own["mean"].flat.to(body.start)
    body.buffers = {k: b.to(device) for k, b in buffers.items()}
    return Policy(**own, scenery=scenery, body=body, bound=BOUNDS[limits] if bound is None else bound)


def _weights(name: str, count: int | None, tensors: Mapping[str, Tensor], device: Any) -> Weights:
    seen = None if count is None else Sight(int(count), tensors[f"{name}.seen"], tensors[f"{name}.squares"])
    return Weights(tensors[name].to(device), seen)
