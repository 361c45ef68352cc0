"""The energy of a net's weights: how unlikely the data and the prior find them."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.contracts import Batch, Prior, Problem
from doxa.data.rows import Inputs, map_inputs, row_count, take_rows
from doxa.engine.context import StepContext
from doxa.gradients.point import PointGradient
from doxa.posteriors.delta import Delta
from doxa.random.keys import seed_of
from doxa.random.philox import Stream


class PosteriorEnergy:
    """−log p(y, w | x) of K chains' weights, all rows of the data together, and no weight on either term.

    U(w) = −Σᵢ log p(yᵢ | xᵢ, w) − Σⱼ log p(wⱼ)

    `rows` of the data go through the nets at a time; the sum is over all of them.
    """

    def __init__(self, problem: Problem, prior: Prior, x: Inputs, y: Tensor, rows: int) -> None:
        chains, random = len(problem.start), problem.layout.random
        self.gradient = PointGradient(
            problem, [None] * chains, [None] * chains, make_posterior=lambda mean, _: Delta(mean, random)
        )
        self.prior, self.position = prior, self.gradient.mean
        self.slope, self.part = torch.zeros_like(self.position), torch.zeros_like(self.position)
        self.nll = torch.zeros(chains, dtype=torch.float64, device=y.device)  # Σᵢ −log p(yᵢ | xᵢ, w), of each chain
        spans = [slice(start, start + rows) for start in range(0, row_count(x), rows)]
        # Nets that run as one program share the rows; others take turns on views of them.
        views = 1 if problem.vectorized else chains
        self.batches = [
            Batch(
                map_inputs(take_rows(x, span), lambda t: t.expand(views, *t.shape)),
                y[span].expand(views, *y[span].shape),
            )
            for span in spans
        ]
        seeds = torch.tensor([seed_of(key) for key in problem.seeds], device=y.device)
        self.context = StepContext(Stream(seeds), self.position.new_zeros(chains), [self.position.new_zeros(chains)])

    def evaluate(self) -> None:
        """Bring `slope` to the position, by all rows."""
        self.nll.zero_()
        self.slope.zero_()
        for batch in self.batches:
            with torch.enable_grad():
                losses = self.gradient.evaluate(batch, self.context)
            count = batch.y.shape[1]
            self.nll.add_(losses.double(), alpha=count)
            for recipe in self.gradient.slopes(self.context, prior=False):
                recipe.fill({"mean": self.part})
            self.slope.add_(self.part, alpha=count)
        with torch.no_grad():
            self.slope -= self.prior.grad_log_prob(self.position)

    @torch.no_grad()
    def energy(self) -> Tensor:
        """U [K] where it was evaluated last, in float64."""
        return self.nll - self.prior.log_prob(self.position).double().sum(1)
