"""Perturbations of low rank: a full one's variance in every weight, for the price of two thin products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from doxa.errors import whole
from doxa.noise.interception import Apply, Interception, Site
from doxa.noise.leaves import sites_of
from doxa.noise.source import Listening, Source
from doxa.search import shaping
from doxa.search.distribution.gaussian import Gaussian, Slopes
from doxa.search.engines.contract import Exchange
from doxa.search.engines.in_process import evaluated
from doxa.search.perturbations.apart import Apart, Drawn
from doxa.search.scene import Answer, Named, Rows, Scene
from doxa.search.shaping import Shaping
from doxa.weights.layout import Slot

THIN = 1  # the number of the streams of thin matrices; that of whole weights is 0


@dataclass(frozen=True)
class LowRank:
    """Every perturbation of a matrix is a product of two thin ones, so that the nets share their largest products.

    W_n = mean + scale · A_n C_nᵀ/√r,  A_n [out, r] and C_n [in, r] standard normal;
    x W_nᵀ = x meanᵀ + scale (x C_n) A_nᵀ/√r

    Every entry has the variance of a full perturbation, and entries are uncorrelated: slopes by the mean stay unbiased
    to the second order of the objective. Scales stay as they are, one for all weights of a matrix. Weights that are no
    matrix of one linear map are perturbed as in `weight_space`.
    Sarkar et al. (2025), Evolution strategies at the hyperscale.
    """

    rank: int = 1
    antithetic: bool = True
    shaping: Shaping = shaping.centred_ranks
    baseline: bool = False  # whether a weight is that of a value against all others'

    name = "low_rank"

    def __post_init__(self) -> None:
        whole("rank", self.rank)

    def start(self, scene: Scene) -> LowRankAtWork:
        return LowRankAtWork(self, scene)


class LowRankAtWork:
    """Thin matrices made of seeds, each perturbation with its own."""

    def __init__(self, estimator: LowRank, scene: Scene) -> None:
        self.estimator, self.scene = estimator, scene
        layout, uses = scene.problem.layout, scene.problem.uses
        single = {k: u for k, u in uses.single.items() if u.operation == "linear" and u.role == "weight"}
        self.uses = replace(uses, single=single)
        self.thin = [s for s in layout.random_slots if s.name in single]
        self.apart = Apart([s for s in layout.slots if s not in self.thin], scene.population)
        self.noise = {s.name: "low-rank search" if s in self.thin else "search" for s in layout.slots}
        self.sizes = [n * estimator.rank for s in self.thin for n in s.shape]

    @property
    def width(self) -> int:
        """Numbers that one unit is made of."""
        return sum(self.sizes) + sum(s.stop - s.start for s in self.apart.slots)

    def _factors(self, generation: int, units: slice, like: Tensor) -> list[tuple[Slot, Tensor, Tensor]]:
        """A [units, out, r] and C [units, in, r] of each matrix."""
        wide = self.scene.population.noise(generation, units, like.new_empty(sum(self.sizes)), THIN)
        parts = [part.unflatten(1, (-1, self.estimator.rank)) for part in wide.split(self.sizes, 1)]
        return list(zip(self.thin, parts[::2], parts[1::2], strict=True))

    @torch.no_grad()
    def answers(self, at: Gaussian, generation: int, units: slice, rows: Rows) -> Answer:
        """What the perturbations of some units come to [n]."""
        scene, population = self.scene, self.scene.population
        own, parameters = self.apart.points(at, generation, units)
        scales, factors = at.scales, {}
        for s, left, right in self._factors(generation, units, at.mean):
            # A mirror image has one of the two thin matrices turned round.
            step = left * (scales[s.start] * self.estimator.rank**-0.5)
            factors[s.name] = (
                population.mirrored(torch.zeros_like(step[0]), step),
                right.repeat_interleave(population.per_unit, 0),
            )
        views = scene.problem.layout.views(at.mean)
        means = {s.name: views[s.name] for s in self.thin}
        sites = sites_of(self.uses, means, means)

        def run(given: tuple[Drawn, dict[str, tuple[Tensor, Tensor]]], buffers: Named) -> Tensor:
            weights, thin = given

            def rule(apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site, _: Source) -> Tensor:
                left, right = thin[site.name]
                # An outer product at a time: rank is low, and a batched product of thin matrices is slow.
                found = apply(x, weight, bias)
                for a, c in zip((x @ right).split(1, -1), left.split(1, -1), strict=True):
                    found = torch.addcmul(found, a, c.mT)
                return found

            with Interception(sites, rule, Listening()):
                return scene.run({**means, **weights}, buffers, rows.x)

        outputs = scene.each(run, (own, factors), rows, population.stream(generation, units))
        found = scene.answer(outputs, parameters, rows.y)
        return Answer(scene.means(found.values), found.nll)

    @torch.no_grad()
    def estimate(
        self, at: Gaussian, generation: int, rows: Rows, exchange: Exchange = evaluated
    ) -> tuple[Slopes, Tensor, Tensor]:
        """The slopes, and the value and NLL of each perturbation that arrived."""
        population, own = self.scene.population, self.estimator
        blocks = list(self._blocks(rows))
        parts = exchange(generation, lambda units: self.answers(at, generation, units, rows).packed(), blocks)
        table, here = population.arrived(parts, blocks)
        weights = population.weighed(table[:, 0], here, own.shaping, own.baseline) / population.size
        odd, _ = population.paired(weights)
        by_mean, unused = torch.zeros_like(at.mean), torch.zeros_like(at.mean)
        scales = at.scales
        for units in population.blocks(self.width):
            for s, left, right in self._factors(generation, units, at.mean):
                tall = (left * odd[units, None, None]).permute(1, 0, 2).flatten(1)
                product = tall @ right.permute(0, 2, 1).flatten(0, 1)
                by_mean[s.span] += product.flatten() * (self.estimator.rank**-0.5 / scales[s.start])
            self.apart.add(at, generation, units, weights[population.perturbations(units)], by_mean, unused)
        return Slopes(by_mean, torch.zeros_like(at.scale)), table[:, 0], table[:, 1]

    def _blocks(self, rows: Rows) -> Iterator[slice]:
        widest = max((s.shape[0] for s in self.thin), default=1)
        # Activations come in twos, what goes into a unit and what comes out.
        numbers = self.scene.population.per_unit * max(self.width, 2 * len(rows.y) * widest)
        return self.scene.population.blocks(numbers, parts=self.scene.parts)
