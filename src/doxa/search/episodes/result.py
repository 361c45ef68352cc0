"""What a search for a policy comes to."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from doxa.errors import BadInput, require_whole
from doxa.random.keys import Key, seed_of
from doxa.search.episodes.actions import TABLE as BOUNDS
from doxa.search.episodes.actions import Bound, choose_actions
from doxa.search.episodes.environments import Environment, EnvironmentSpec
from doxa.search.episodes.observation_normalizer import Normalise, NormalisedRecurrentNet, ObservationNormalizer
from doxa.search.episodes.policy_network import PolicyBatch, PolicyNetwork
from doxa.search.episodes.rollout import rollout
from doxa.search.episodes.saved_policy import WHICH, SavedPolicy, decode_policy, require_sound
from doxa.storage import sealed
from doxa.weights.layout import module_mode
from doxa.weights.saved_layout import encode_layout, require_same_net

KIND = "doxa.policy"


@dataclass(frozen=True)
class Weights:
    """A net's weights [P], and the normalizer that they go with."""

    flat: Tensor
    normalizer: ObservationNormalizer | None


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
    env_spec: EnvironmentSpec = field(repr=False)
    network: PolicyNetwork = field(repr=False)
    bound: Bound = field(repr=False)

    def play(self, episodes: int = 100, seed: int = 0, which: str = "best") -> Tensor:
        """The returns of new episodes [episodes], played by the best or the mean weights."""
        seeds = episode_seeds((seed, "play"), require_whole("episodes", episodes))
        return play_episodes(self.network, self.env_spec, self._select(which), seeds, self.bound)

    def act(self, observation: Any, which: str = "best") -> Any:
        """What to do, as the environment's `step` takes it, on seeing one observation."""
        if self.network.recurrent:
            raise BadInput("what this policy does depends on what it has seen before: ask a player, policy.player()")
        return self.player(which).act(observation)

    def player(self, which: str = "best") -> Player:
        """One who acts, observation by observation, and remembers what it has seen of its episode."""
        return Player(self, which)

    def module(self, which: str = "best") -> nn.Module:
        """A plain torch module from observations [B, ...] to outputs [B, K]: normalizer, then the net with its weights.

        The highest output is the discrete action; continuous ones are outputs within their bounds. One that remembers
        takes its last state beside the observations, none as an episode begins, and gives outputs and a state.
        """
        weights = self._select(which)
        net = copy.deepcopy(self.network.net)
        net.eval()
        net.load_state_dict({**self.network.layout.weights(weights.flat), **self.network.buffers}, strict=False)
        if weights.normalizer is None:
            return net
        if self.network.recurrent:
            return NormalisedRecurrentNet(weights.normalizer, net, weights.flat)
        return nn.Sequential(Normalise(weights.normalizer, weights.flat), net)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy to one file: safetensors with a JSON header and a SHA-256 over both.

        What `load_policy` would refuse, such as weights that are not finite, is refused here.
        """
        env_spec, network = self.env_spec, self.network
        tensors: dict[str, Tensor] = {"scale": self.scale}
        counts: dict[str, int | None] = {}
        normalizers = {name: self._select(name).normalizer for name in WHICH}
        for name in WHICH:
            weights = self._select(name)
            tensors[name] = weights.flat
            counts[name] = None if weights.normalizer is None else weights.normalizer.count
            if weights.normalizer is not None:
                tensors |= {f"{name}.seen": weights.normalizer.mean, f"{name}.squares": weights.normalizer.squares}
        tensors |= {f"buffers.{k}": b for k, b in network.buffers.items()}
        header = {
            "layout": encode_layout(network.layout),
            "environment": env_spec.environment if isinstance(env_spec.environment, str) else None,
            "longest": env_spec.longest,
            "bound": next((name for name, bound in BOUNDS.items() if bound is self.bound), None),
            "solved": self.solved,
            "trajectory": self.trajectory,
            "counts": counts,
        }
        try:
            require_sound({"best": self.best.flat, "mean": self.mean.flat, "scale": self.scale}, normalizers)
        except ValueError as error:
            raise BadInput(f"the policy cannot be saved: {error}") from None
        sealed.write(path, KIND, header, tensors)

    def _select(self, which: str) -> Weights:
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
        policy = self.policy
        observations = policy.env_spec.encode_observations(np.asarray(observation)[None])
        outputs = self.net(torch.from_numpy(observations).to(policy.network.initial_weights), *self.state)
        if policy.network.recurrent:
            outputs, self.state = outputs[0], outputs[1:]
        action = choose_actions(outputs.cpu(), policy.env_spec.action_space, policy.bound)[0]
        return action.item() if action.ndim == 0 else action


def play_episodes(
    network: PolicyNetwork, env_spec: EnvironmentSpec, weights: Weights, seeds: Sequence[int], bound: Bound
) -> Tensor:
    """The returns of one policy's episodes [E]."""
    policies = PolicyBatch(network, weights.flat[None], len(seeds))
    with module_mode(network.net, training=False):
        return rollout(policies, env_spec.sequential, env_spec, weights.normalizer, [seeds], bound).returns[0]


def episode_seeds(key: Key, count: int) -> list[int]:
    """Seeds of episodes, each of 32 bits."""
    return [seed_of((*key, "episode", k)) >> 31 for k in range(count)]


def load_policy(
    path: str | PathLike[str], net: nn.Module, environment: Environment | None = None, bound: Bound | None = None
) -> Policy:
    """The policy in a file, for the net it was searched with; nothing in the file is ever executed.

    An environment that was made by a function, and a bound that is not of doxa.search.episodes, must be given again.
    """
    header, tensors = sealed.read(path, KIND)
    saved = decode_policy(path, header, tensors)
    require_same_net(path, saved.layout, saved.buffers, net)
    _require_same_precision(path, saved, net)
    device = next((p.device for p in net.parameters()), torch.device("cpu"))
    environment = _stored_environment(path, saved) if environment is None else environment
    if bound is None and saved.bound not in BOUNDS:
        raise BadInput(f"the policy in {path} bounds its actions in a way of its own: pass bound=")
    env_spec = EnvironmentSpec(environment, saved.longest)
    _require_observations(path, saved, env_spec)
    with torch.no_grad(), module_mode(net, training=False):
        network = PolicyNetwork(net, env_spec.observation_shape, env_spec.output_count)
    # Which weights were searched is the file's to say, whatever is frozen in the net that it is loaded for.
    network.layout, network.initial_weights = saved.layout, saved.weights["mean"].to(network.initial_weights)
    network.buffers = {k: b.to(device) for k, b in saved.buffers.items()}
    return Policy(
        **{name: Weights(saved.weights[name].to(device), saved.normalizers[name]) for name in WHICH},
        scale=saved.scale.to(device),
        solved=saved.solved,
        trajectory=saved.trajectory,
        env_spec=env_spec,
        network=network,
        bound=BOUNDS[str(saved.bound)] if bound is None else bound,
    )


def _stored_environment(path: str | PathLike[str], saved: SavedPolicy) -> str:
    """The name of the environment that a file has, if it may be made by its name."""
    if saved.environment is None:
        raise BadInput(f"the policy in {path} acts in an environment that a function made: pass environment=")
    if ":" in saved.environment:  # gymnasium would import what stands before it
        raise BadInput(
            f"the environment {saved.environment!r} of the policy in {path} names a module, and no file may have one "
            f"imported: pass environment={saved.environment!r}, if you trust it"
        )
    return saved.environment


def _require_same_precision(path: str | PathLike[str], saved: SavedPolicy, net: nn.Module) -> None:
    """Refuse a net that calculates in another precision than the policy's numbers."""
    net_tensors = dict((*net.named_parameters(), *net.named_buffers()))
    weights = {slot.name: saved.weights["best"] for slot in saved.layout.slots}
    for name, t in {**weights, **saved.buffers}.items():
        if name in net_tensors and net_tensors[name].dtype != t.dtype:
            raise BadInput(
                f"{name} of the policy in {path} is {t.dtype}, that of the net {net_tensors[name].dtype}; bring the "
                f"net to the policy's precision, e.g. net.to({t.dtype})"
            )


def _require_observations(path: str | PathLike[str], saved: SavedPolicy, env_spec: EnvironmentSpec) -> None:
    """Refuse statistics of other observations than the environment's."""
    for name, normalizer in saved.normalizers.items():
        if normalizer is not None and tuple(normalizer.mean.shape) != tuple(env_spec.observation_shape):
            raise BadInput(
                f"the policy in {path} has seen observations of shape {tuple(normalizer.mean.shape)} ({name}), but the "
                f"environment's are {tuple(env_spec.observation_shape)}; pass the environment it was searched in"
            )
