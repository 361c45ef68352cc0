"""Weights that no special perturbation reaches: each of them drawn whole, once for every perturbation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from doxa.search.distribution.gaussian import SearchDistribution
from doxa.search.perturbations.population import Population
from doxa.weights.layout import LIKELIHOOD, Slot

PerturbedTensors = dict[str, Tensor]


@dataclass(frozen=True)
class WholeWeightPerturbations:
    """Some tensors of a net, perturbed as in weight space beside others that are not."""

    slots: Sequence[Slot]
    population: Population

    def noise(self, distribution: SearchDistribution, generation: int, units: slice) -> PerturbedTensors:
        """ε of every tensor by name, [units, numel]."""
        sizes = [s.stop - s.start for s in self.slots]
        flat_noise = self.population.noise(generation, units, distribution.mean.new_empty(sum(sizes)))
        return dict(zip((s.name for s in self.slots), flat_noise.split(sizes, 1), strict=True))

    def points(
        self, distribution: SearchDistribution, generation: int, units: slice
    ) -> tuple[PerturbedTensors, PerturbedTensors]:
        """The perturbed tensors [n, ...] of some units: the net's own, and the likelihood's by their bare names."""
        if not self.slots:
            return {}, {}
        scales, perturbed = distribution.scales, {}
        for s, epsilon in zip(self.slots, self.noise(distribution, generation, units).values(), strict=True):
            step = epsilon * scales[s.span]
            perturbed[s.name] = self.population.mirror(distribution.mean[s.span], step).view(-1, *s.shape)
        parameters = {k.removeprefix(LIKELIHOOD): v for k, v in perturbed.items() if k.startswith(LIKELIHOOD)}
        return {k: v for k, v in perturbed.items() if not k.startswith(LIKELIHOOD)}, parameters

    def add_slopes(
        self,
        distribution: SearchDistribution,
        generation: int,
        units: slice,
        weights: Tensor,
        by_mean: Tensor,
        by_log: Tensor,
    ) -> None:
        """Add weights [n] times scores, by mean [P] and by the log of each weight's scale [P]."""
        if not self.slots:
            return
        odd, even = self.population.odd_and_even(weights)
        scales = distribution.scales
        for s, epsilon in zip(self.slots, self.noise(distribution, generation, units).values(), strict=True):
            by_mean[s.span] += (odd @ epsilon) / scales[s.span]
            by_log[s.span] += even @ epsilon.square() - even.sum()
