"""A search for a policy under way: generations of episodes, and trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa.search.ask_tell import Search
from doxa.search.engines.contract import Exchange
from doxa.search.episodes.actions import Bound
from doxa.search.episodes.environments import EnvironmentSpec, VectorEnvironment
from doxa.search.episodes.observation_normalizer import ObservationNormalizer, empty_normalizer
from doxa.search.episodes.policy_network import PolicyBatch, PolicyNetwork
from doxa.search.episodes.result import Policy, Weights, episode_seeds, play_episodes
from doxa.search.episodes.rollout import Rollout, rollout, unpack_rollout
from doxa.search.resumable_search import follow_search
from doxa.terminal.progress import format_metrics
from doxa.weights.layout import module_mode
from doxa.weights.saved_layout import decode_layout, encode_layout, require_same_net

KIND = "doxa.policy_search"  # of its files
WINDOW = 5  # generations whose episodes say how good the mean is
TRIAL = 100  # episodes that decide whether it is good enough


@dataclass
class PolicySearch:
    """A net that is to act, where it acts, and how far it has come."""

    search: Search
    env_spec: EnvironmentSpec
    network: PolicyNetwork
    bound: Bound
    seed: int
    episodes: int  # of each perturbation
    common: bool
    target: float | None
    generations: int
    parts: int  # that a generation is divided into, at least
    normalizer: ObservationNormalizer | None
    trajectory: list[dict[str, float]] = field(default_factory=list)
    best: Weights | None = None
    best_return: float = -math.inf  # what the best weights earned
    solved: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a worker: it holds no trials."""
        return {**self.__dict__, "target": None}

    @property
    def weights(self) -> Weights:
        """The mean, as it is now."""
        return Weights(self.search.mean.clone(), self.normalizer)

    @property
    def converged(self) -> bool:
        """Whether the target is reached."""
        return self.solved

    def follow(self, exchange: Exchange) -> None:
        """Go on beside the search that this is a copy of, by what it and all others find."""
        with module_mode(self.network.net, training=False):
            follow_search(self, exchange)

    def run_generation(self, exchange: Exchange) -> None:
        """Let all perturbations play, and the mean beside them; then take the step, and learn how to see."""
        search, weights = self.search, self.weights
        blocks = search.blocks(self.parts)
        parts = exchange(search.generation, search.evaluation_at_state(self.evaluate), blocks)
        rollouts = [None if part is None else unpack_rollout(part, self.env_spec.observation_shape) for part in parts]
        mean_return: dict[str, float] = {}
        if rollouts[0] is not None:  # with whom the mean has played
            mean_return = {"middle": float(rollouts[0].returns[-1])}
            rollouts[0] = replace(rollouts[0], returns=rollouts[0].returns[:-1])
        returns, arrived = search.pending_population.gather_arrived(
            [None if rollout_of_block is None else rollout_of_block.returns[:, 0] for rollout_of_block in rollouts],
            blocks,
        )
        row = search.tell(-returns, arrived)
        observed = empty_normalizer(self.env_spec.observation_shape)
        for rollout_of_block in rollouts:
            observed = observed if rollout_of_block is None else observed.merge(rollout_of_block.observation_stats)
        if self.normalizer is not None:
            self.normalizer = self.normalizer.merge(observed)
        self.trajectory.append(
            {
                "generation": row["generation"],
                "return": -row["value"],
                "highest": -row["lowest"],
                **mean_return,
                "scale": row["scale"],
                "gradient": row["gradient"],
                "scale_gradient": row["scale_gradient"],
                "steps": float(observed.count),
            }
        )
        self._update_best(weights)

    def evaluate(self, units: slice) -> Tensor:
        """What the perturbations of some units earn and see, and with the first of them the mean."""
        search = self.search
        points, numbers = (
            search.points(units),
            range(search.population.size)[search.population.perturbation_slice(units)],
        )
        if units.start > 0:
            return self._play_episodes(points, [*numbers]).pack()
        return self._play_episodes(torch.cat([points, search.mean[None]]), [*numbers, search.population.size]).pack()

    def _play_episodes(self, points: Tensor, numbers: list[int]) -> Rollout:
        """Episodes of some perturbations, the mean being the one after the last."""
        environments: VectorEnvironment = self.env_spec.sequential
        key = (self.seed, "generation", self.search.generation)
        if self.common:
            seeds = [episode_seeds(key, self.episodes)] * len(points)
        else:
            seeds = [episode_seeds((*key, "perturbation", n), self.episodes) for n in numbers]
            environments = self.env_spec.vectorized(len(points) * self.episodes) or environments
        policies = PolicyBatch(self.network, points, self.episodes)
        return rollout(policies, environments, self.env_spec, self.normalizer, seeds, self.bound)

    def _update_best(self, weights: Weights) -> None:
        """Keep the mean that earned most over the last generations; put it to the trial where that is enough."""
        recent = self.trajectory[-WINDOW:]
        mean_returns = [row["middle"] for row in recent if "middle" in row]
        if len(mean_returns) < WINDOW:
            return
        recent_return = sum(mean_returns) / WINDOW
        if recent_return > self.best_return:
            self.best_return, self.best = recent_return, weights
        recently_tried = any("trial" in row for row in recent)
        if self.target is not None and recent_return >= self.target and not recently_tried:
            seeds = episode_seeds((self.seed, "trial", self.search.generation), TRIAL)
            trial_returns = play_episodes(self.network, self.env_spec, weights, seeds, self.bound)
            self.trajectory[-1]["trial"] = float(trial_returns.mean())
            if float(trial_returns.mean() - 2 * trial_returns.std() / math.sqrt(TRIAL)) >= self.target:
                self.best, self.solved = weights, True

    def progress_text(self) -> str:
        return format_metrics(self.trajectory[-1], "return", "middle")

    def partial_result(self) -> Policy:
        """What has been found by now."""
        return Policy(
            best=self.best or self.weights,
            mean=self.weights,
            scale=self.search.distribution.scales.clone(),
            solved=self.solved,
            trajectory=list(self.trajectory),
            env_spec=self.env_spec,
            network=self.network,
            bound=self.bound,
        )

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        tensors: dict[str, Tensor] = {} if self.best is None else {"best": self.best.flat}
        counts = {}
        for name, normalizer in (
            ("sight", self.normalizer),
            ("best", None if self.best is None else self.best.normalizer),
        ):
            if normalizer is not None:
                tensors |= {f"{name}.mean": normalizer.mean, f"{name}.squares": normalizer.squares}
                counts[name] = normalizer.count
        layout = encode_layout(self.network.layout)
        return {"layout": layout, "highest": self.best_return, "solved": self.solved, "counts": counts}, tensors

    def load(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        normalizers = {
            name: ObservationNormalizer(count, tensors[f"{name}.mean"], tensors[f"{name}.squares"])
            for name, count in header["counts"].items()
        }
        shape = torch.Size(self.env_spec.observation_shape)
        if any({n.mean.shape, n.squares.shape} != {shape} for n in normalizers.values()):
            raise ValueError(f"statistics of observations must have shape {tuple(shape)}")
        self.normalizer, self.solved, self.best_return = normalizers.get("sight"), header["solved"], header["highest"]
        if "best" in tensors:
            if tensors["best"].shape != self.search.mean.shape:
                raise ValueError(f"best has shape {tuple(tensors['best'].shape)}, of {len(self.search.mean)} weights")
            self.best = Weights(tensors["best"].to(self.search.mean), normalizers.get("best"))

    def require_fit(self, path: Path, header: Mapping[str, Any]) -> None:
        """Refuse a file of another net's weights."""
        require_same_net(path, decode_layout(header["layout"]), self.network.buffers, self.network.net)
