"""The point estimate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from doxa.contracts import Draw
from doxa.posteriors.density import no_density
from doxa.posteriors.fit import require_finite, require_numbers, require_random
from doxa.random.keys import Key
from doxa.weights.layout import Layout


@dataclass(frozen=True)
class Delta:
    """All belief on one vector of weights: what maximum likelihood and MAP end with.

    q(w) = δ(w − mean)

    MacKay (2003), Information theory, inference and learning algorithms, chapter 41.
    """

    mean: Tensor  # [P]
    random: int

    @property
    def scale(self) -> Tensor:
        return torch.zeros_like(self.mean[: self.random])

    @property
    def relevance(self) -> Tensor:
        """|mean|: a point has no noise to compare with."""
        return self.mean[: self.random].abs()

    @property
    def components(self) -> int:
        return 1

    @property
    def distinct(self) -> int | None:
        return 1

    def draws(self, samples: int, key: Key) -> Iterator[Draw]:
        """The one vector there is, once."""
        yield Draw(self.mean)

    def log_prob(self, w: Tensor) -> Tensor:
        """Refused, by BadInput: there is no density."""
        raise no_density("a delta has all of its mass at one vector")

    def pruned(self, keep: Tensor) -> Delta:
        mean = self.mean.clone()
        mean[: self.random] *= keep
        return replace(self, mean=mean)

    def require_fit(self, layout: Layout) -> None:
        """Refuse, by BadInput, to be a belief about other weights."""
        require_random(self.random, layout)
        require_numbers("mean", self.mean, (layout.size,))
        require_finite("mean", self.mean)


delta = Delta
EXAMPLES = {"delta": lambda layout, start, uses: Delta(start, layout.random)}
