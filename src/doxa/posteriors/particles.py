"""A handful of weight vectors."""

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
from doxa.weights.probe import Uses


@dataclass(frozen=True)
class Particles:
    """Equal belief in each of S vectors of weights: what an ensemble of point estimates, or a sampler, ends with.

    q(w) = (1/S) Σₛ δ(w − wₛ)

    Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using deep ensembles.
    """

    weights: Tensor  # [S, P]
    random: int

    @property
    def mean(self) -> Tensor:
        """The middle of the particles; as weights of a net it is rarely a good one."""
        return self.weights.mean(0)

    @property
    def scale(self) -> Tensor:
        return self.weights[:, : self.random].std(0, correction=0)

    @property
    def relevance(self) -> Tensor:
        """Root mean square over the particles: their spread is between nets, not noise within one."""
        return self.weights[:, : self.random].square().mean(0).sqrt()

    @property
    def components(self) -> int:
        return len(self.weights)

    @property
    def distinct(self) -> int | None:
        return len(self.weights)

    def draws(self, samples: int, key: Key) -> Iterator[Draw]:
        """Every particle once, whatever `samples` says: drawing again would add nothing."""
        for s, w in enumerate(self.weights):
            yield Draw(w, s, 1 / len(self.weights))

    def log_prob(self, w: Tensor) -> Tensor:
        """Refused, by BadInput: there is no density."""
        raise no_density("particles have all of their mass at a few vectors")

    def pruned(self, keep: Tensor) -> Particles:
        weights = self.weights.clone()
        weights[:, : self.random] *= keep
        return replace(self, weights=weights)

    def require_fit(self, layout: Layout) -> None:
        """Refuse, by BadInput, to be a belief about other weights."""
        require_random(self.random, layout)
        require_numbers("weights", self.weights, (None, layout.size))
        require_finite("weights", self.weights)


def _example(layout: Layout, start: Tensor, uses: Uses) -> Particles:
    return Particles(
        start + 0.1 * torch.randn(5, len(start), generator=torch.Generator().manual_seed(2)), layout.random
    )


particles = Particles
EXAMPLES = {"particles": _example}
