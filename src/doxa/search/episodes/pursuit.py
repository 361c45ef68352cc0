"""A search for a policy under way: generations of episodes, and trials."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa.errors import Diverged, Interrupted
from doxa.layout import not_finite
from doxa.progress import Progress, told
from doxa.search.ask_tell import Search
from doxa.search.episodes.actions import Bound
from doxa.search.episodes.actors import Actors, Body
from doxa.search.episodes.result import Policy, Weights, episode_seeds, played
from doxa.search.episodes.rollout import Played, rollout
from doxa.search.episodes.saving import save
from doxa.search.episodes.sight import Sight, blank
from doxa.search.episodes.stage import Scenery, Stage

WINDOW = 5  # generations whose episodes say how good the mean is
TRIAL = 100  # episodes that decide whether it is good enough


@dataclass
class Pursuit:
    """All that a checkpoint holds, and how to go on."""

    search: Search
    scenery: Scenery
    body: Body
    bound: Bound
    seed: int
    episodes: int  # of each perturbation
    common: bool
    target: float | None
    generations: int
    folder: Path | None
    settings: dict[str, Any]
    sight: Sight | None
    trajectory: list[dict[str, float]] = field(default_factory=list)
    best: Weights | None = None
    highest: float = -math.inf  # what the best weights earned
    solved: bool = False

    @property
    def done(self) -> int:
        return self.search.generation

    @property
    def weights(self) -> Weights:
        """The mean, as it is now."""
        return Weights(self.search.mean.clone(), self.sight)

    def go(self, stop: threading.Event, progress: Progress) -> None:
        """Generation after generation, until all are done, the target is reached, or someone asks to stop."""
        with progress as shown:
            while self.done < self.generations and not self.solved:
                self.generation()
                shown.words = told(self.trajectory[-1], "return", "middle")
                shown.step(self.done)
                if self.folder is not None:
                    save(self)
                if stop.is_set() and self.done < self.generations and not self.solved:
                    self.interrupted()

    def generation(self) -> None:
        """Let all perturbations play, and the mean beside them; then take the step, and learn how to see."""
        search, now = self.search, self.weights
        returns, middle, steps = [], 0.0, 0
        seen = blank(self.scenery.shape)
        for units in search.population.blocks(len(search.mean)):
            points = search.points(units)
            first = units.start == 0
            came = self._play(torch.cat([points, search.mean[None]]) if first else points, units)
            seen, steps = seen.joined(came.seen), steps + came.steps
            found = came.returns.mean(1)
            if first:
                found, middle = found[:-1], float(found[-1])
            returns.append(found)
        every = torch.cat(returns)
        row = search.tell(-every)
        if self.sight is not None:
            self.sight = self.sight.joined(seen)
        self.trajectory.append(
            {
                "generation": row["generation"],
                "return": -row["value"],
                "highest": -row["lowest"],
                "middle": middle,
                "scale": row["scale"],
                "gradient": row["gradient"],
                "scale_gradient": row["scale_gradient"],
                "steps": float(steps),
            }
        )
        if (trouble := not_finite(self.body.layout, search.mean)) is not None:
            raise Diverged(f"{trouble} in generation {self.done}: lower lr, or start from another scale")
        self._weigh(now)

    def _play(self, points: Tensor, units: slice) -> Played:
        """Episodes of the perturbations of some units, and of whoever is with them."""
        where: Stage = self.scenery.apart
        key = (self.seed, "generation", self.done)
        if self.common:
            seeds = [episode_seeds(key, self.episodes)] * len(points)
        else:
            offset = self.search.population.perturbations(units).start
            seeds = [episode_seeds((*key, "perturbation", offset + n), self.episodes) for n in range(len(points))]
            where = self.scenery.together(len(points) * self.episodes) or where
        actors = Actors(self.body, points, self.episodes)
        return rollout(actors, where, self.scenery, self.sight, seeds, self.bound)

    def _weigh(self, now: Weights) -> None:
        """Keep the mean that earned most over the last generations; put it to the trial where that is enough."""
        recent = self.trajectory[-WINDOW:]
        if len(recent) < WINDOW:
            return
        earned = sum(row["middle"] for row in recent) / WINDOW
        if earned > self.highest:
            self.highest, self.best = earned, now
        tried = any("trial" in row for row in recent)
        if self.target is not None and earned >= self.target and not tried:
            found = played(
                self.body, self.scenery, now, episode_seeds((self.seed, "trial", self.done), TRIAL), self.bound
            )
            self.trajectory[-1]["trial"] = float(found.mean())
            if float(found.mean() - 2 * found.std() / math.sqrt(TRIAL)) >= self.target:
                self.best, self.solved = now, True

    def policy(self) -> Policy:
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

    def interrupted(self) -> None:
        words = f"stopped after generation {self.done} of {self.generations}"
        if self.folder is None:
            words += "; nothing was saved, since no checkpoint folder was given: this error's .belief holds the policy"
        else:
            words += f"; saved in {self.folder}. Go on with the same call and resume=True"
        raise Interrupted(words, self.policy())
