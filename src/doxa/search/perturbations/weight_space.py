"""Perturbations of the weights themselves."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.search import shaping
from doxa.search.distribution.gaussian import Gaussian, Slopes
from doxa.search.engines.contract import Exchange
from doxa.search.engines.in_process import evaluated
from doxa.search.scene import Answer, Named, Rows, Scene
from doxa.search.shaping import Shaping


@dataclass(frozen=True)
class WeightSpace:
    """Every perturbation is one net, judged by all rows of the batch.

    ∂U/∂mean ≈ (1/N) Σ_n f(w_n) ε_n/scale,  w_n = mean + scale ∘ ε_n

    It asks nothing of net or objective. Its noise falls with the number of perturbations alone, not with that of rows.
    Rechenberg (1973), Evolutionsstrategie; Salimans et al. (2017), Evolution strategies as a scalable alternative to
    reinforcement learning.
    """

    antithetic: bool = True
    shaping: Shaping = shaping.centred_ranks
    baseline: bool = False  # whether a weight is that of a value against all others'

    name = "weight_space"

    def start(self, scene: Scene) -> WeightSpaceAtWork:
        return WeightSpaceAtWork(self, scene)


class WeightSpaceAtWork:
    """Weights of many nets at a time, made of seeds and forgotten; made again for the update."""

    def __init__(self, estimator: WeightSpace, scene: Scene) -> None:
        self.estimator, self.scene = estimator, scene
        self.noise = {s.name: "search" for s in scene.problem.layout.slots}

    @property
    def width(self) -> int:
        """Numbers that one unit needs."""
        return self.scene.population.per_unit * self.scene.problem.layout.size

    @torch.no_grad()
    def answers(self, at: Gaussian, generation: int, units: slice, rows: Rows) -> Answer:
        """What the perturbations of some units come to [n]."""
        population = self.scene.population
        points = population.points(at, population.noise(generation, units, at.mean))
        layout, stream = self.scene.problem.layout, population.stream(generation, units)

        def run(flat: Tensor, buffers: Named) -> Tensor:
            return self.scene.run(layout.weights(flat), buffers, rows.x)

        outputs = self.scene.each(run, points, rows, stream)
        found = self.scene.answer(outputs, layout.parameters(points), rows.y)
        return Answer(self.scene.means(found.values), found.nll)

    @torch.no_grad()
    def estimate(
        self, at: Gaussian, generation: int, rows: Rows, exchange: Exchange = evaluated
    ) -> tuple[Slopes, Tensor, Tensor]:
        """The slopes, and the value and NLL of each perturbation that arrived."""
        population, own = self.scene.population, self.estimator
        blocks = list(population.blocks(self.width, parts=self.scene.parts))
        parts = exchange(generation, lambda units: self.answers(at, generation, units, rows).packed(), blocks)
        table, here = population.arrived(parts, blocks)
        weights = population.weighed(table[:, 0], here, own.shaping, own.baseline)
        return population.slopes(at, generation, weights), table[:, 0], table[:, 1]
