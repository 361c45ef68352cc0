"""An equal mixture of posteriors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from doxa.contracts import Draw, Posterior
from doxa.errors import BadInput
from doxa.posteriors.density import log_density
from doxa.posteriors.fit import require_numbers
from doxa.random.keys import Key
from doxa.weights.layout import Layout


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

    @property
    def components(self) -> int:
        """Those of the first member, then those of the second, and so on."""
        return sum(m.components for m in self.members)

    @property
    def distinct(self) -> int | None:
        """Their sum; without end where one member's are."""
        counts = [m.distinct for m in self.members]
        return None if None in counts else sum(c for c in counts if c is not None)

    def draws(self, samples: int, key: Key) -> Iterator[Draw]:
        """The same number asked of every member, at least one each, member after member in turn.

        A member weighs 1/K, however many draws it yields.
        """
        draws_per_member = -(-samples // len(self.members))
        first_component = 0
        for k, member in enumerate(self.members):
            for draw in member.draws(draws_per_member, (*key, "member", k)):
                share = draw.weight / len(self.members)
                yield replace(draw, component=first_component + draw.component, weight=share)
            first_component += member.components

    def log_prob(self, w: Tensor) -> Tensor:
        """log q(w) = log (1/K) Σₖ qₖ(w) of flat weights [..., P], in float64 [...]; every member must tell its own."""
        log_densities = torch.stack([log_density(m, w) for m in self.members])
        return log_densities.logsumexp(0) - math.log(len(self.members))

    def pruned(self, keep: Tensor) -> Mixture:
        return replace(self, members=tuple(m.pruned(keep) for m in self.members))

    def require_fit(self, layout: Layout) -> None:
        """Refuse, by BadInput, to be a belief about other weights; a member of one's own need not know how."""
        if not self.members:
            raise BadInput("a mixture has no members; expected one or more posteriors")
        for member in self.members:
            require_fit(member, layout)


def require_fit(posterior: Posterior, layout: Layout) -> None:
    """Refuse, by BadInput, a posterior that is no belief about a layout's weights, as far as it can tell."""
    if hasattr(posterior, "require_fit"):
        posterior.require_fit(layout)
    else:
        require_numbers("mean", posterior.mean, (layout.size,))
        require_numbers("scale", posterior.scale, (layout.random,))


mixture = Mixture
