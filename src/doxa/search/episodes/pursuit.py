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
from doxa.search.episodes.actors import Actors, Body
from doxa.search.episodes.result import Policy, Weights, episode_seeds, played
from doxa.search.episodes.rollout import Played, rollout, unpacked
from doxa.search.episodes.sight import Sight, blank
from doxa.search.episodes.stage import Scenery, Stage
from doxa.search.under_way import follow
from doxa.terminal.progress import told
from doxa.weights.layout import mode
from doxa.weights.saved_layout import decode_layout, encode_layout, require_same_net

KIND = "doxa.policy_search"  # of its files
WINDOW = 5  # generations whose episodes say how good the mean is
TRIAL = 100  # episodes that decide whether it is good enough


@dataclass
class Pursuit:
    """A net that is to act, where it acts, and how far it has come."""

    search: Search
    scenery: Scenery
    body: Body
    bound: Bound
    seed: int
    episodes: int  # of each perturbation
    common: bool
    target: float | None
    generations: int
    parts: int  # that a generation is divided into, at least
    sight: Sight | None
    trajectory: list[dict[str, float]] = field(default_factory=list)
    best: Weights | None = None
    highest: float = -math.inf  # what the best weights earned
    solved: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a worker: it holds no trials."""
        return {**self.__dict__, "target": None}

    @property
    def weights(self) -> Weights:
        """The mean, as it is now."""
        return Weights(self.search.mean.clone(), self.sight)

    @property
    def over(self) -> bool:
        """Whether the target is reached."""
        return self.solved

    def follow(self, exchange: Exchange) -> None:
        """Go on beside the search that this is a copy of, by what it and all others find."""
        with mode(self.body.net, training=False):
            follow(self, exchange)

    def generation(self, exchange: Exchange) -> None:
        """Let all perturbations play, and the mean beside them; then take the step, and learn how to see."""
        search, now = self.search, self.weights
        blocks = search.blocks(self.parts)
        parts = exchange(search.generation, search.placed(self.evaluate), blocks)
        came = [None if part is None else unpacked(part, self.scenery.shape) for part in parts]
        middle: dict[str, float] = {}
        if came[0] is not None:  # with whom the mean has played
            middle = {"middle": float(came[0].returns[-1])}
            came[0] = replace(came[0], returns=came[0].returns[:-1])
        returns, here = search.wanted.arrived([None if one is None else one.returns[:, 0] for one in came], blocks)
        row = search.tell(-returns, here)
        seen = blank(self.scenery.shape)
        for one in came:
            seen = seen if one is None else seen.joined(one.seen)
        if self.sight is not None:
            self.sight = self.sight.joined(seen)
        self.trajectory.append(
            {
                "generation": row["generation"],
                "return": -row["value"],
                "highest": -row["lowest"],
                **middle,
                "scale": row["scale"],
                "gradient": row["gradient"],
                "scale_gradient": row["scale_gradient"],
                "steps": float(seen.count),
            }
        )
        self._weigh(now)

    def evaluate(self, units: slice) -> Tensor:
        """What the perturbations of some units earn and see, and with the first of them the mean."""
        search = self.search
        points, numbers = search.points(units), range(search.population.size)[search.population.perturbations(units)]
        if units.start > 0:
            return self._play(points, [*numbers]).packed()
        return self._play(torch.cat([points, search.mean[None]]), [*numbers, search.population.size]).packed()

    def _play(self, points: Tensor, numbers: list[int]) -> Played:
        """Episodes of some perturbations, the mean being the one after the last."""
        where: Stage = self.scenery.apart
        key = (self.seed, "generation", self.search.generation)
        if self.common:
            seeds = [episode_seeds(key, self.episodes)] * len(points)
        else:
            seeds = [episode_seeds((*key, "perturbation", n), self.episodes) for n in numbers]
            where = self.scenery.together(len(points) * self.episodes) or where
        actors = Actors(self.body, points, self.episodes)
        return rollout(actors, where, self.scenery, self.sight, seeds, self.bound)

    def _weigh(self, now: Weights) -> None:
        """Keep the mean that earned most over the last generations; put it to the trial where that is enough."""
        recent = self.trajectory[-WINDOW:]
        middles = [row["middle"] for row in recent if "middle" in row]
        if len(middles) < WINDOW:
            return
        earned = sum(middles) / WINDOW
        if earned > self.highest:
            self.highest, self.best = earned, now
        tried = any("trial" in row for row in recent)
        if self.target is not None and earned >= self.target and not tried:
            seeds = episode_seeds((self.seed, "trial", self.search.generation), TRIAL)
            found = played(self.body, self.scenery, now, seeds, self.bound)
            self.trajectory[-1]["trial"] = float(found.mean())
            if float(found.mean() - 2 * found.std() / math.sqrt(TRIAL)) >= self.target:
                self.best, self.solved = now, True

    def words(self) -> str:
        return told(self.trajectory[-1], "return", "middle")

    def found(self) -> Policy:
        """What has been found by now."""
        return Policy(
            best=self.best or self.weights,
            mean=self.weights,
            scale=self.search.at.scales.clone(),
            solved=self.solved,
            trajectory=list(self.trajectory),
            scenery=self.scenery,
            body=self.body,
            bound=self.bound,
        )

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        tensors: dict[str, Tensor] = {} if self.best is None else {"best": self.best.flat}
        counts = {}
        for name, sight in (("sight", self.sight), ("best", None if self.best is None else self.best.sight)):
            if sight is not None:
                tensors |= {f"{name}.mean": sight.mean, f"{name}.squares": sight.squares}
                counts[name] = sight.count
        layout = encode_layout(self.body.layout)
        return {"layout": layout, "highest": self.highest, "solved": self.solved, "counts": counts}, tensors

    def load(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        sights = {
            name: Sight(count, tensors[f"{name}.mean"], tensors[f"{name}.squares"])
            for name, count in header["counts"].items()
        }
        self.sight, self.solved, self.highest = sights.get("sight"), header["solved"], header["highest"]
        if "best" in tensors:
            self.best = Weights(tensors["best"].to(self.search.mean), sights.get("best"))

    def require_fit(self, path: Path, header: Mapping[str, Any]) -> None:
        """Refuse a file of another net's weights."""
        require_same_net(path, decode_layout(header["layout"]), self.body.buffers, self.body.net)
