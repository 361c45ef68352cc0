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
from doxa_replicate.weight_uncertainty.uci_regression.methods import METHODS, Candidate, NetFactory, one_hidden_layer
from doxa_replicate.weight_uncertainty.uci_regression.splits import Splits

WIDENINGS = (0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
CHOOSING_DRAWS, TESTING_DRAWS = 20, 200  # draws
LEAST_NOISE = 1e-3  # noise, of targets that are on no grid to speak of


@dataclass(frozen=True)
class BenchmarkSize:
    """How large the nets are and how long they learn."""

    width: int
    batch: int
    epochs: int


@dataclass(frozen=True)
class TrainingJob:
    """A training: a setting on rows of a split, `number` of its kind."""

    candidate: Candidate
    split: int
    rows: Tensor
    number: int


@dataclass(frozen=True)
class SplitBenchmark:
    """What all trainings of a method on a set have in common."""

    splits: Splits
    size: BenchmarkSize
    device: str | None = None
    progress: bool = False

    @cached_property
    def least_noise(self) -> float:
        """The least noise in the splits' units."""
        n = self.splits.rows_per_split
        noise_by_split = [grid_noise(self.splits.y[s * n : (s + 1) * n]) for s in range(len(self.splits.numbers))]
        return max(LEAST_NOISE, *noise_by_split)

    @property
    def net_factory(self) -> NetFactory:
        return one_hidden_layer(self.splits.x.shape[1], self.size.width)

    def likelihood(self, per_input: bool) -> Likelihood:
        return gaussian_per_input(self.least_noise) if per_input else gaussian_learned(0.5)

    def start_net(self, key: tuple[Any, ...], per_input: bool) -> nn.Module:
        """A net with weights of its own."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(key) % 2**32)
            return self.net_factory(per_input)

    def train(self, jobs: Sequence[TrainingJob]) -> list[Belief | None]:
        """What comes of each training, None where it diverged; those that can be are one program."""
        belief_by_job: dict[int, Belief | None] = {}
        for per_input in (True, False):
            indices = [i for i, job in enumerate(jobs) if job.candidate.per_input is per_input]
            if indices:
                belief_by_job |= dict(zip(indices, self._fleet([jobs[i] for i in indices], per_input), strict=True))
        return [belief_by_job[i] for i in range(len(jobs))]

    def _fleet(self, jobs: Sequence[TrainingJob], per_input: bool) -> Sequence[Belief | None]:
        keys = [(self.splits.numbers[job.split], job.number, "start") for job in jobs]
        nets = {key: self.start_net(key, per_input) for key in keys}
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
        except Diverged as diverged:
            if diverged.beliefs is None:
                raise
            return diverged.beliefs

    def score_candidates(self, candidates: Sequence[Candidate]) -> Tensor:
        """The log-likelihood of rows set aside, by split, setting and widening [S, C, W]; −∞ where it diverged."""
        folds = [
            (s, f, *self.splits.fold(s, f)) for s in range(len(self.splits.numbers)) for f in range(self.splits.folds)
        ]
        jobs = [TrainingJob(candidate, s, rows, f) for s, f, rows, _ in folds for candidate in candidates]
        beliefs = self.train(jobs)
        scores = torch.zeros(len(self.splits.numbers), len(candidates), len(WIDENINGS), dtype=torch.float64)
        for number, (s, _, _, held_out) in enumerate(folds):
            x, y, unit = self.splits.x[held_out], self.splits.y[held_out], float(self.splits.unit[s])
            fold_beliefs = beliefs[number * len(candidates) : (number + 1) * len(candidates)]
            trained_indices = [c for c, belief in enumerate(fold_beliefs) if belief is not None]
            predictions = predict([belief for belief in fold_beliefs if belief is not None], x, CHOOSING_DRAWS)
            means = torch.full_like(scores[s], -math.inf)
            for c, draws in zip(trained_indices, predictions, strict=True):
                means[c] = log_density(draws, y, unit, WIDENINGS, self.least_noise).mean(1).cpu()
            scores[s] += means / self.splits.folds
        return scores

    def test_chosen(self, chosen_settings: Sequence[tuple[Candidate, float]]) -> list[dict[str, float]]:
        """Log-likelihood and RMSE on each split's test rows, of its own setting learned on all training rows."""
        jobs = [
            TrainingJob(candidate, s, self.splits.all_rows(s), -1) for s, (candidate, _) in enumerate(chosen_settings)
        ]
        scores = []
        for s, belief in enumerate(self.train(jobs)):
            candidate, widening = chosen_settings[s]
            if belief is None:
                raise Diverged(f"{self.splits.name}, split {self.splits.numbers[s]}: {candidate} diverged on all rows")
            y, unit = self.splits.y_test[s], float(self.splits.unit[s])
            draws = belief.predict(self.splits.x_test[s], TESTING_DRAWS)
            density = log_density(draws, y, unit, [widening], self.least_noise)
            rmse = unit * math.sqrt(float(squared_error(draws, y).mean()))
            scores.append({"log_likelihood": float(density.mean()), "rmse": rmse})
        return scores


def evaluate_method(name: str, benchmark: SplitBenchmark, full: bool) -> dict[str, Any]:
    """A method's scores on every split, and what was chosen there."""
    candidates = METHODS[name](benchmark.net_factory, full)
    scores = benchmark.score_candidates(candidates)
    best = [divmod(int(split_scores.flatten().argmax()), len(WIDENINGS)) for split_scores in scores]
    chosen_settings = [(candidates[c], WIDENINGS[w]) for c, w in best]
    tested = benchmark.test_chosen(chosen_settings)
    rows: dict[str, list[Any]] = defaultdict(list)
    for s, (test_scores, (candidate, widening)) in enumerate(zip(tested, chosen_settings, strict=True)):
        rows["log_likelihood"].append(test_scores["log_likelihood"])
        rows["rmse"].append(test_scores["rmse"])
        rows["setting"].append(str(candidate))
        rows["widening"].append(widening)
        rows["aside"].append(float(scores[s].max()))
    return dict(rows)
