"""The perturbations of a generation: noise that anyone can make again from a seed and a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.errors import BadInput, Diverged, require_whole
from doxa.random import streams
from doxa.random.keys import Key, seed_of
from doxa.random.philox import Stream, fill_normals
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes
from doxa.search.shaping import Shaping, subtract_mean_of_others

# Numbers that are made at a time: on a CPU what its caches hold, on a GPU what keeps it busy.
MAX_BLOCK_NUMBERS = {"cpu": 1 << 22, "cuda": 1 << 26}


@dataclass(frozen=True)
class Population:
    """N perturbations a generation, independent or in mirrored pairs.

    w_n = mean + scale ∘ ε_n;  in pairs w = mean ± scale ∘ ε

    ε_n is a function of the seed, the generation and n alone, so that only numbers of perturbations and values of the
    objective need to travel. Pairs remove what is even in the objective from the slope by the mean, and make that by
    the scale more uncertain where nothing is odd.
    Geweke (1988), Antithetic acceleration of Monte Carlo integration in Bayesian inference.
    """

    size: int
    antithetic: bool
    seeds: Tensor  # [units]

    @property
    def units(self) -> int:
        """Independent draws: pairs, or single perturbations."""
        return len(self.seeds)

    @property
    def per_unit(self) -> int:
        return 2 if self.antithetic else 1

    def noise(self, generation: int, units: slice, like: Tensor, number: int = streams.SEARCH_WEIGHTS) -> Tensor:
        """ε of some units [units, P]."""
        out = like.new_empty(len(range(*units.indices(self.units))), like.shape[-1])
        fill_normals(out, Stream(self.seeds[units], generation, number))
        return out

    def stream(self, generation: int, units: slice) -> Stream:
        """The streams of the perturbations of some units, mirror images among them."""
        return Stream(self.seeds[units].repeat_interleave(self.per_unit), generation)

    def blocks(self, width: int, most: int | None = None, parts: int = 1, least: int = 1) -> Iterator[slice]:
        """All units in so many even stretches, the same for whoever works.

        In more where one would be of more than so many numbers; in fewer where it would be of less than `least` units.
        """
        numbers = MAX_BLOCK_NUMBERS.get(self.seeds.device.type, MAX_BLOCK_NUMBERS["cpu"]) if most is None else most
        units_per_block = max(1, numbers // max(1, width))
        count = min(max(parts, -(-self.units // units_per_block)), max(1, self.units // least), self.units)
        return (slice(k * self.units // count, (k + 1) * self.units // count) for k in range(count))

    def perturbation_slice(self, units: slice) -> slice:
        """Where the perturbations of some units stand among all N."""
        return slice(units.start * self.per_unit, units.stop * self.per_unit)

    def points(self, distribution: SearchDistribution, epsilon: Tensor) -> Tensor:
        """The vectors of some units [n, P]: each one, and beside it its mirror image."""
        points = epsilon.new_empty(len(epsilon), self.per_unit, epsilon.shape[1])
        for sign_index in range(self.per_unit):
            torch.addcmul(
                distribution.mean, epsilon, distribution.scales, value=1 - 2 * sign_index, out=points[:, sign_index]
            )
        return points.flatten(0, 1)

    def mirror(self, middle: Tensor, step: Tensor) -> Tensor:
        """What steps [units, ...] away from a middle lead to [n, ...]; in pairs, on both sides of it."""
        if not self.antithetic:
            return middle + step
        return torch.stack([middle + step, middle - step], 1).flatten(0, 1)

    def odd_and_even(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """What is odd and what is even in the weights [n] of some units: their difference and sum in each pair."""
        columns = weights.view(-1, self.per_unit)
        return (columns[:, 0] - columns[:, 1] if self.antithetic else columns[:, 0]), columns.sum(1)

    def shape_values(self, values: Tensor, shaping: Shaping, baseline: bool) -> Tensor:
        """The weights of values [n, ...] of some units, against all others' where a baseline is asked for."""
        weights = shaping(values)
        return subtract_mean_of_others(weights, self.per_unit) if baseline else weights

    def gather_arrived(self, parts: Sequence[Tensor | None], blocks: Sequence[slice]) -> tuple[Tensor, Tensor]:
        """What blocks came to, in order [n, ...], and which of all N perturbations it belongs to [N]."""
        arrived = [part for part in parts if part is not None]
        if not blocks:  # nothing was asked for
            return self.seeds.new_empty(0, dtype=torch.float64), self.seeds.new_empty(0, dtype=torch.bool)
        if not arrived:
            raise Diverged("no perturbation of the generation arrived: every worker was lost at once")
        arrival_mask = torch.zeros(self.size, dtype=torch.bool, device=self.seeds.device)
        for part, units in zip(parts, blocks, strict=True):
            arrival_mask[self.perturbation_slice(units)] = part is not None
        return torch.cat(arrived).to(self.seeds.device), arrival_mask

    def weigh_arrived(self, values: Tensor, arrival_mask: Tensor, shaping: Shaping, baseline: bool) -> Tensor:
        """The weights of all N perturbations, with the mean of those that arrived; those that did not have none."""
        weights = values.new_zeros(self.size)
        weights[arrival_mask] = self.shape_values(values, shaping, baseline) * (self.size / len(values))
        return weights

    def slopes(
        self, distribution: SearchDistribution, generation: int, weights: Tensor, number: int = streams.SEARCH_WEIGHTS
    ) -> SearchSlopes:
        """The mean over all perturbations of weight [N] times score.

        ∂U/∂mean ≈ (1/N) Σ_n u_n ε_n/scale,  ∂U/∂log scale_g ≈ (1/N) Σ_n u_n Σ_{i in g} (ε²_ni − 1)
        """
        by_mean, by_log = torch.zeros_like(distribution.mean), torch.zeros_like(distribution.mean)
        odd, even = self.odd_and_even(weights.to(distribution.mean))
        for units in self.blocks(len(distribution.mean)):
            epsilon = self.noise(generation, units, distribution.mean, number)
            by_mean.addmv_(epsilon.T, odd[units])
            by_log.addmv_(epsilon.square_().T, even[units])
        by_log -= even.sum()
        return SearchSlopes(
            by_mean.div_(self.size * distribution.scales), distribution.by_group(by_log).div_(self.size)
        )


def make_population(size: int, antithetic: bool, key: Key, device: torch.device | str = "cpu") -> Population:
    """N perturbations, by a key that tells them from all others."""
    size = require_whole("size of the population", size, least=2)
    if antithetic and size % 2:
        raise BadInput(f"mirrored perturbations come in pairs: the population must be even, got {size}")
    units = size // 2 if antithetic else size
    seeds = torch.tensor([seed_of((*key, "perturbation", n)) for n in range(units)], device=device)
    return Population(size, antithetic, seeds)
