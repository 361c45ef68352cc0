"""Perturbations of activations: local reparameterisation for variational optimisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, Diverged
from doxa.noise.interception import Interception
from doxa.noise.leaves import Leaf, sites_of
from doxa.noise.source import Asked, Handed, Listening, made
from doxa.random.philox import Stream
from doxa.search import shaping
from doxa.search.distribution.gaussian import Gaussian, Slopes
from doxa.search.engines.contract import Exchange
from doxa.search.engines.in_process import evaluated
from doxa.search.perturbations.apart import Apart, Drawn
from doxa.search.perturbations.tape import Met, Tape, pull
from doxa.search.scene import Answer, Named, Rows, Scene, settled_norms
from doxa.search.shaping import Shaping

ROWS = 1  # the number of the streams of rows' noise; that of whole weights is 0
AT_ONCE = 1 << 26  # numbers of noise that are held at a time
LEAST = 8  # perturbations of a block: each row of one is judged against the same row of the block's others


@dataclass(frozen=True)
class Local:
    """Every row of every perturbation has noise of its own, in the outputs of linear maps and convolutions.

    z = m + √v ζ,  m = f(a, mean),  v = f(a², scale²);
    ∂U/∂mean ≈ (1/NB) Σ_nb f_b(z_n) ζ/√v · ∂m/∂mean,  ∂U/∂scale² ≈ (1/NB) Σ_nb f_b(z_n) (ζ² − 1)/2v · ∂v/∂scale²

    Each row is its own perturbation of all weights, judged by its own loss against the same row's other losses: the
    noise of the estimate falls with N times B. Nothing is differentiated but the linear maps themselves: activations
    may be steps, and the loss may count errors. It needs a loss of each row; of convolutions and tokens it drops the
    correlation between positions. However many parts an engine asks for, eight perturbations or more are judged
    together. Weights that no linear map or convolution uses once are perturbed as in `weight_space`, and BatchNorm goes
    by its running statistics, since a row's output must not depend on others' noise.
    Kingma, Salimans & Welling (2015), Variational dropout and the local reparameterization trick.
    """

    shaping: Shaping = shaping.raw
    baseline: bool = True  # whether a weight is that of a row's loss against its others

    name = "local"
    antithetic = False

    def start(self, scene: Scene) -> LocalAtWork:
        if not scene.by_row:
            raise BadInput(
                "local perturbations need a loss for each row, and the objective gives one number for all rows: choose "
                "doxa.search.weight_space() or low_rank(), or an objective that gives a number a row"
            )
        return LocalAtWork(self, scene)


class LocalAtWork:
    """A net with noise in its maps, all perturbations of it as one program where it can be."""

    def __init__(self, estimator: Local, scene: Scene) -> None:
        self.estimator, self.scene = estimator, scene
        layout, uses = scene.problem.layout, scene.problem.uses
        single = {k: use for k, use in uses.single.items() if use.row_axes == (0,)}
        self.uses = replace(uses, single=single)
        self.reached = [s for s in layout.random_slots if s.name in single]
        self.apart = Apart([s for s in layout.slots if s not in self.reached], scene.population)
        self.noise = {s.name: "local search" if s in self.reached else "search" for s in layout.slots}
        # One product is enough for the variances where a map's weights share a scale, in the way that groups do.
        self.plain = all(use.groups == 1 and not use.transposed for use in single.values())
        self.asked: dict[Any, list[Asked]] = {}

    def estimate(
        self, at: Gaussian, generation: int, rows: Rows, exchange: Exchange = evaluated
    ) -> tuple[Slopes, Tensor, Tensor]:
        """The slopes, and the mean value and NLL of each perturbation that arrived.

        What a block tells of the slopes travels as a whole: to make it again would be to evaluate again.
        """
        blocks, size = self._blocks(at, rows), len(at.mean)
        parts = exchange(generation, lambda units: self.answers(at, generation, units, rows), blocks)
        known = [part.to(at.mean.device) for part in parts if part is not None]
        if not known:
            raise Diverged("no perturbation of the generation arrived: every worker was lost at once")
        by_mean, by_log = known[0][: 2 * size].clone().split(size)
        for part in known[1:]:
            by_mean += part[:size]
            by_log += part[size : 2 * size]
        values, nll = torch.cat([part[2 * size :].view(2, -1) for part in known], 1)
        slopes = Slopes(by_mean.div_(len(values)), at.by_group(by_log.div_(len(values))))
        return slopes, values, nll

    def answers(self, at: Gaussian, generation: int, units: slice, rows: Rows) -> Tensor:
        """What the perturbations of some units tell, added up: by mean [P], by log scale [P], values [n], NLL [n]."""
        by_mean, by_log = torch.zeros_like(at.mean), torch.zeros_like(at.mean)
        with settled_norms(self.scene.problem.net):
            means, squares = self._leaves(at)
            answer, met = self._run(at, generation, units, rows, means, squares)
        shaped = self.scene.population.shaped(answer.values, self.estimator.shaping, self.estimator.baseline)
        weights = shaped / len(rows.y)
        of_maps = pull(met, weights)
        for slot in self.reached:
            by_mean[slot.span] += _gradient(means[slot.name])
            by_log[slot.span] += 2 * _gradient(squares[slot.name]) * squares[slot.name].detach().flatten()
        first = {s.name: s.start for s in self.reached}
        for name, slope in of_maps.items():  # it belongs to the scale that all weights of the map share
            by_log[first[name]] += slope
        self.apart.add(at, generation, units, weights.sum(1), by_mean, by_log)
        return torch.cat([by_mean, by_log, answer.values.mean(1), answer.nll])

    def _blocks(self, at: Gaussian, rows: Rows) -> Sequence[slice]:
        """All perturbations together unless they are too many, never a few alone: a baseline matters more than room."""
        of_rows = sum(prod(asked.shape) for asked in self._wanted(at, rows))
        whole = sum(s.stop - s.start for s in self.apart.slots)
        return list(self.scene.population.blocks(of_rows + whole, AT_ONCE, self.scene.parts, LEAST))

    def _leaves(self, at: Gaussian) -> tuple[Leaf, Leaf]:
        layout = self.scene.problem.layout
        thin = at.shared and self.plain
        means = {k: v.detach().requires_grad_() for k, v in layout.views(at.mean).items()}
        squares = {k: v.detach().requires_grad_(not thin) for k, v in layout.views(at.scales.square()).items()}
        return means, squares

    def _run(
        self, at: Gaussian, generation: int, units: slice, rows: Rows, means: Leaf, squares: Leaf
    ) -> tuple[Answer, list[Met]]:
        scene = self.scene
        stream = Stream(scene.population.seeds[units], generation, ROWS)
        own, parameters = self.apart.points(at, generation, units)
        sites = sites_of(self.uses, means, squares)
        thin = at.shared and self.plain
        shared = {site.name: squares[site.name].detach().flatten()[0] for site in sites} if thin else None
        noise = made(self._wanted(at, rows), [(stream, 1.0)])
        names: list[str] = []

        def run(given: tuple[Drawn, list[Tensor]], buffers: Named) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
            (weights, zeta), tape = given, Tape(shared)
            with Interception(sites, tape.rule, Handed(zeta)):
                output = scene.run({**means, **weights}, buffers, rows.x)
            names[:] = [m.name for m in tape.met]
            return output.detach(), [(m.mean, m.variance) for m in tape.met]

        with torch.enable_grad():
            outputs, pairs = scene.each(run, (own, noise), rows, stream)
        met = [Met(k, mean, variance, z) for k, (mean, variance), z in zip(names, pairs, noise, strict=True)]
        with torch.no_grad():
            return scene.answer(outputs, parameters, rows.y), met

    def _wanted(self, at: Gaussian, rows: Rows) -> list[Asked]:
        """What noise a pass over so many rows asks for, found by listening to one."""
        key = tuple(rows.y.shape)
        if key not in self.asked:
            listening, (means, squares) = Listening(), self._leaves(at)
            sites = sites_of(self.uses, means, squares)
            buffers = {k: b.clone() for k, b in rows.buffers.items()}
            listened = Interception(sites, Tape(None).rule, listening)
            with torch.no_grad(), settled_norms(self.scene.problem.net), listened:
                self.scene.run(means, buffers, rows.x)
            self.asked[key] = listening.asked
        return self.asked[key]


def _gradient(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf).flatten() if leaf.grad is None else leaf.grad.flatten()
