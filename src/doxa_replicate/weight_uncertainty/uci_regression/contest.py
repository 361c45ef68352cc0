"""A method on a set: settings chosen inside each training split, learned again on all of it, then tested."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from doxa.contracts import Likelihood
from doxa.errors import Diverged
from doxa.likelihoods import gaussian_learned, gaussian_per_input
from doxa.predict.belief import Belief
from doxa.random.keys import seed_of
from doxa.training.fleet import fleet, predict
from doxa_replicate.weight_uncertainty.uci_regression.density import grid_noise, log_density, squared_error
from doxa_replicate.weight_uncertainty.uci_regression.methods import METHODS, Candidate, Net, one_hidden_layer
from doxa_replicate.weight_uncertainty.uci_regression.splits import Splits

WIDENINGS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
CHOOSING, TESTING = 20, 200  # draws
LEAST = 1e-3  # noise, of targets that are on no grid to speak of


@dataclass(frozen=True)
class Size:
    """How large the nets are and how long they learn."""

    width: int
    batch: int
    epochs: int


@dataclass(frozen=True)
class Job:
    """A training: a setting on rows of a split, `number` of its kind."""

    candidate: Candidate
    split: int
    rows: Tensor
    number: int


@dataclass(frozen=True)
class Contest:
    """What all trainings of a method on a set have in common."""

    splits: Splits
    size: Size
    device: str | None = None
    progress: bool = False

    @cached_property
    def least(self) -> float:
        """The least noise in the splits' units."""
        n = self.splits.rows
        own = [grid_noise(self.splits.y[s * n : (s + 1) * n]) for s in range(len(self.splits.numbers))]
        return max(LEAST, *own)

    @property
    def net(self) -> Net:
        return one_hidden_layer(self.splits.x.shape[1], self.size.width)

    def likelihood(self, per_input: bool) -> Likelihood:
        return gaussian_per_input(self.least) if per_input else gaussian_learned(0.5)

    def started(self, key: tuple[Any, ...], per_input: bool) -> nn.Module:
        """A net with weights of its own."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(key) % 2**32)
            return self.net(per_input)

    def learned(self, jobs: Sequence[Job]) -> list[Belief | None]:
        """What comes of each training, None where it diverged; those that can be are one program."""
        found: dict[int, Belief | None] = {}
        for per_input in (True, False):
            group = [i for i, job in enumerate(jobs) if job.candidate.per_input is per_input]
            if group:
                found |= dict(zip(group, self._fleet([jobs[i] for i in group], per_input), strict=True))
        return [found[i] for i in range(len(jobs))]

    def _fleet(self, jobs: Sequence[Job], per_input: bool) -> Sequence[Belief | None]:
        keys = [(self.splits.numbers[job.split], job.number, "start") for job in jobs]
        nets = {key: self.started(key, per_input) for key in keys}
        try:
            return fleet(
                [nets[key] for key in keys],
                (self.splits.x, self.splits.y),
                learners=[job.candidate.learner for job in jobs],
                likelihood=self.likelihood(per_input),
                seeds=[seed_of(key) % 2**31 for key in keys],
                lr=[job.candidate.rate for job in jobs],
                rows=[job.rows for job in jobs],
                epochs=self.size.epochs,
                batch_size=self.size.batch,
                device=self.device,
                progress=self.progress,
            )
        except Diverged as error:
            if error.beliefs is None:
                raise
            return error.beliefs

    def tried(self, candidates: Sequence[Candidate]) -> Tensor:
        """The log-likelihood of rows set aside, by split, setting and widening [S, C, W]; −∞ where it diverged."""
        parts = [
            (s, f, *self.splits.fold(s, f)) for s in range(len(self.splits.numbers)) for f in range(self.splits.folds)
        ]
        jobs = [Job(candidate, s, rows, f) for s, f, rows, _ in parts for candidate in candidates]
        beliefs = self.learned(jobs)
        scores = torch.zeros(len(self.splits.numbers), len(candidates), len(WIDENINGS), dtype=torch.float64)
        for number, (s, _, _, held) in enumerate(parts):
            x, y, unit = self.splits.x[held], self.splits.y[held], float(self.splits.unit[s])
            own = beliefs[number * len(candidates) : (number + 1) * len(candidates)]
            there = [c for c, belief in enumerate(own) if belief is not None]
            each = predict([belief for belief in own if belief is not None], x, CHOOSING)
            means = torch.full_like(scores[s], -math.inf)
            for c, draws in zip(there, each, strict=True):
                means[c] = log_density(draws, y, unit, WIDENINGS, self.least).mean(1).cpu()
            scores[s] += means / self.splits.folds
        return scores

    def tested(self, chosen: Sequence[tuple[Candidate, float]]) -> list[dict[str, float]]:
        """Log-likelihood and RMSE on each split's test rows, of its own setting learned on all training rows."""
        jobs = [Job(candidate, s, self.splits.all_rows(s), -1) for s, (candidate, _) in enumerate(chosen)]
        found = []
        for s, belief in enumerate(self.learned(jobs)):
            candidate, widening = chosen[s]
            if belief is None:
                raise Diverged(f"{self.splits.name}, split {self.splits.numbers[s]}: {candidate} diverged on all rows")
            y, unit = self.splits.y_test[s], float(self.splits.unit[s])
            draws = belief.predict(self.splits.x_test[s], TESTING)
            density = log_density(draws, y, unit, [widening], self.least)
            rmse = unit * math.sqrt(float(squared_error(draws, y).mean()))
            found.append({"log_likelihood": float(density.mean()), "rmse": rmse})
        return found


def contest(name: str, whole: Contest, full: bool) -> dict[str, Any]:
    """A method's scores on every split, and what was chosen there."""
    candidates = METHODS[name](whole.net, full)
    scores = whole.tried(candidates)
    best = [divmod(int(own.flatten().argmax()), len(WIDENINGS)) for own in scores]
    chosen = [(candidates[c], WIDENINGS[w]) for c, w in best]
    tested = whole.tested(chosen)
    rows: dict[str, list[Any]] = defaultdict(list)
    for s, (found, (candidate, widening)) in enumerate(zip(tested, chosen, strict=True)):
        rows["log_likelihood"].append(found["log_likelihood"])
        rows["rmse"].append(found["rmse"])
        rows["setting"].append(str(candidate))
        rows["widening"].append(widening)
        rows["aside"].append(float(scores[s].max()))
    return dict(rows)
