"""How the members of a committee are trained: each on the rows of all folds but one, as a fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from doxa.auto.kl_candidates import KLWeight, build_schedule
from doxa.contracts import Likelihood, Prior
from doxa.learners.variational import Variational
from doxa.noise import Noise
from doxa.posteriors.mean_field import Family
from doxa.predict.belief import Belief
from doxa.random.keys import seed_of
from doxa.training.fleet import fleet

START_SCALE = 0.05  # scale of every weight


@dataclass(frozen=True, eq=False)
class FoldTraining:
    """What all members have in common; the k-th learns without the k-th fold of the rows x [N, ·], y [N, ·]."""

    net: Callable[[], nn.Module]
    x: Tensor
    y: Tensor
    folds: Tensor  # [N]: which fold each row is in
    members: int
    likelihood: Likelihood
    prior: Prior
    noise: Noise
    epochs: int
    batch_size: int
    lr: float
    seed: int
    device: torch.device | str | None
    folder: Path | None
    progress: bool

    def held_out(self, member: int) -> Tensor:
        """The rows that a member does not learn from, and that stop it."""
        return (self.folds == member).nonzero().flatten()

    def held_out_pair(self, member: int) -> tuple[Tensor, Tensor]:
        """Their x and y."""
        rows = self.held_out(member)
        return self.x[rows], self.y[rows]

    def fit(self, members: Sequence[tuple[int, KLWeight]], name: str) -> list[Belief]:
        """The beliefs of members at KL weights, on the CPU."""
        training_rows = [(self.folds != k).nonzero().flatten() for k in range(self.members)]
        rows_each = min(map(len, training_rows))  # as many for each, so that they learn as one program
        beliefs = fleet(
            [self._start_net(k) for k, _ in members],
            (self.x, self.y),
            learners=[
                Variational(
                    self.prior, self.noise, posterior=Family(scale=START_SCALE), kl_weight=build_schedule(weight)
                )
                for _, weight in members
            ],
            likelihood=self.likelihood,
            seeds=[self.seed] * len(members),
            rows=[training_rows[k][:rows_each] for k, _ in members],
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            validation=[self.held_out_pair(k) for k, _ in members],
            patience=max(5, self.epochs // 10),
            device=self.device,
            checkpoint=None if self.folder is None else self.folder / name,
            resume=self.folder is not None,
            progress=self.progress,
        )
        return beliefs if self.device is None else [belief.to("cpu") for belief in beliefs]

    def _start_net(self, member: int) -> nn.Module:
        """A net that starts where the member's seed says."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of((self.seed, "member", member)) % 2**32)
            return self.net()
