"""A net at its start with one batch of rows, where slopes are estimated again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

import doxa
from doxa.contracts import Problem
from doxa.search.distribution.gaussian import SearchDistribution
from doxa.search.objectives import Objective
from doxa.search.perturbations.population import make_population
from doxa.search.population_evaluator import EvaluationBatch, PopulationEvaluator
from doxa.search.score_function import GradientEstimator, Perturbation
from doxa.weights.layout import call, lay_out
from doxa.weights.probe import probe
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.variational_optimisation.nets.pictures import load_images, to_device
from doxa_replicate.variational_optimisation.nets.trials import dense_net

HIDDEN, SCALE, BATCH_ROWS = (100, 100), 0.05, 128


@dataclass(frozen=True)
class StartingPoint:
    """A net as torch starts it, in the middle of an isotropic Gaussian, and a batch."""

    problem: Problem
    distribution: SearchDistribution
    rows: EvaluationBatch

    def start_estimator(self, estimator: Perturbation, size: int, seed: int = 0) -> GradientEstimator:
        draws = make_population(size, estimator.antithetic, (seed, "quality"), self.distribution.mean.device)
        return estimator.start(PopulationEvaluator(self.problem, draws, Objective(None), True, True))

    def true_gradient(self) -> Tensor:
        """By back-propagation, at the middle [P]."""
        flat = self.distribution.mean.clone().requires_grad_()
        with torch.enable_grad():
            output = call(self.problem.net, self.problem.layout.weights(flat), {}, self.rows.x)
            loss = torch.nn.functional.cross_entropy(output, self.rows.y)
        (gradient,) = torch.autograd.grad(loss, flat)
        return gradient

    def estimate_gradients(self, estimator: GradientEstimator, repeats: int) -> tuple[Tensor, float]:
        """So many estimates by the mean [repeats, P], and the median of their seconds."""
        estimates, seconds = [], []
        for generation in range(repeats):
            start = time.perf_counter()
            estimates.append(estimator.estimate(self.distribution, generation, self.rows)[0].by_mean)
            if estimates[-1].is_cuda:
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        return torch.stack(estimates), float(torch.tensor(seconds).median())


def starting_point(options: ReplicationOptions, seed: int, scale: float = SCALE) -> StartingPoint:
    """784-100-100-10 and the first rows of Fashion-MNIST in an order of the seed's."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = dense_net(HIDDEN)
        rows = load_images(options, "Fashion-MNIST").train
        order = torch.randperm(len(rows[1]))[:BATCH_ROWS]
    x, y = to_device(options, (rows[0][order], rows[1][order]))
    net = net.to(x.device)
    layout, start = lay_out(net)
    uses, _ = probe(net, layout, start, {}, x)
    problem = Problem(net, layout, uses, doxa.likelihoods.categorical(), start[None], {}, ((seed,),), vectorized=False)
    return StartingPoint(
        problem, SearchDistribution(start, start.new_tensor([scale]), (layout.size,)), EvaluationBatch(x, y, {})
    )
