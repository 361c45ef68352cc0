"""A net at its start with one batch of rows, where slopes are estimated again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

import doxa
from doxa.contracts import Problem
from doxa.search.distribution.gaussian import Gaussian
from doxa.search.objectives import Objective
from doxa.search.perturbations.population import population
from doxa.search.scene import Rows, Scene
from doxa.search.score_function import AtWork, Estimator
from doxa.weights.layout import call, lay_out
from doxa.weights.probe import probe
from doxa_replicate.contract import Ask
from doxa_replicate.variational_optimisation.nets.pictures import pictures, placed
from doxa_replicate.variational_optimisation.nets.trials import dense

HIDDEN, SCALE, ROWS = (100, 100), 0.05, 128


@dataclass(frozen=True)
class Start:
    """A net as torch starts it, in the middle of an isotropic Gaussian, and a batch."""

    problem: Problem
    at: Gaussian
    rows: Rows

    def work(self, estimator: Estimator, size: int, seed: int = 0) -> AtWork:
        own = population(size, estimator.antithetic, (seed, "quality"), self.at.mean.device)
        return estimator.start(Scene(self.problem, own, Objective(None), True, True))

    def slope(self) -> Tensor:
        """By back-propagation, at the middle [P]."""
        flat = self.at.mean.clone().requires_grad_()
        with torch.enable_grad():
            output = call(self.problem.net, self.problem.layout.weights(flat), {}, self.rows.x)
            loss = torch.nn.functional.cross_entropy(output, self.rows.y)
        (found,) = torch.autograd.grad(loss, flat)
        return found

    def slopes(self, work: AtWork, repeats: int) -> tuple[Tensor, float]:
        """So many estimates by the mean [repeats, P], and the median of their seconds."""
        found, seconds = [], []
        for generation in range(repeats):
            start = time.perf_counter()
            found.append(work.estimate(self.at, generation, self.rows)[0].by_mean)
            if found[-1].is_cuda:
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        return torch.stack(found), float(torch.tensor(seconds).median())


def started(ask: Ask, seed: int, scale: float = SCALE) -> Start:
    """784-100-100-10 and the first rows of Fashion-MNIST in an order of the seed's."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = dense(HIDDEN)
        rows = pictures(ask, "Fashion-MNIST").train
        order = torch.randperm(len(rows[1]))[:ROWS]
    x, y = placed(ask, (rows[0][order], rows[1][order]))
    net = net.to(x.device)
    layout, start = lay_out(net)
    uses, _ = probe(net, layout, start, {}, x)
    problem = Problem(net, layout, uses, doxa.likelihoods.categorical(), start[None], {}, ((seed,),), together=False)
    return Start(problem, Gaussian(start, start.new_tensor([scale]), (layout.size,)), Rows(x, y, {}))
