"""An equal mixture of posteriors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from doxa.contracts import Posterior
from doxa.randomness import Key


@dataclass(frozen=True)
class Mixture:
    """Equal belief in each of K posteriors: what an ensemble of beliefs ends with.

    q(w) = (1/K) Σₖ qₖ(w)

    Wilson & Izmailov (2020), Bayesian deep learning and a probabilistic perspective of generalization.
    """

    members: tuple[Posterior, ...]

    @property
    def mean(self) -> Tensor:
        return torch.stack([m.mean for m in self.members]).mean(0)

    @property
    def scale(self) -> Tensor:
        """Law of total variance: mean of the variances plus variance of the means."""
        scales = torch.stack([m.scale for m in self.members])
        means = torch.stack([m.mean for m in self.members])[:, : scales.shape[1]]
        return (scales.square().mean(0) + means.var(0, correction=0)).sqrt()

    @property
    def relevance(self) -> Tensor:
        return torch.stack([m.relevance for m in self.members]).square().mean(0).sqrt()

    def draws(self, samples: int, key: Key) -> Iterator[tuple[Tensor, int]]:
        """The same number from every member, at least one each, member after member in turn."""
        each = -(-samples // len(self.members))
        for k, member in enumerate(self.members):
            for w, _ in member.draws(each, (*key, "member", k)):
                yield w, k

    def pruned(self, keep: Tensor) -> Mixture:
        return replace(self, members=tuple(m.pruned(keep) for m in self.members))
