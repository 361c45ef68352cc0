"""A net to be searched: how it runs on many weights at once, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_map

from doxa.contracts import Inputs, Problem
from doxa.errors import BadInput
from doxa.random.keys import reseed
from doxa.random.philox import Stream
from doxa.search.objectives import Objective
from doxa.search.perturbations.population import Population
from doxa.weights.layout import autocast_context, call

NamedTensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class EvaluationBatch:
    """What all perturbations of a generation see: rows of data, and the net's buffers."""

    x: Inputs
    y: Tensor
    buffers: NamedTensors


@dataclass(frozen=True)
class Evaluation:
    """What perturbations came to: values of the objective, [n] or [n, B], and the mean NLL of each [n]."""

    values: Tensor
    nll: Tensor

    def as_tensor(self) -> Tensor:
        """As numbers that travel [n, 2]."""
        return torch.stack([self.values, self.nll], 1)


@dataclass(frozen=True)
class PopulationEvaluator:
    """One net, what it is judged by, and the perturbations that it is tried with."""

    problem: Problem
    population: Population
    objective: Objective
    by_row: bool  # whether the objective is a number for each row
    vectorized: bool  # whether the net runs on many weights as one program
    parts: int = 1  # that a generation is to be divided into

    def forward(self, weights: NamedTensors, buffers: NamedTensors, x: Inputs) -> Tensor:
        """The net's outputs [B, ...] with given weights."""
        with autocast_context(self.problem.start.device, self.problem.autocast):
            output = call(self.problem.net, weights, buffers, x)
        return output.to(self.problem.start.dtype)

    def map_perturbations(
        self, function: Callable[[Any, NamedTensors], Any], perturbations: Any, batch: EvaluationBatch, stream: Stream
    ) -> Any:
        """What `function` makes of every one of `perturbations` [n, ...] and of its own buffers; all of it [n, ...].

        As one program where the net can be one, else in turn; what happens to the buffers is forgotten.
        """
        count = len(stream.seeds)
        if self.vectorized:
            # Batch statistics of many nets at once need room for each of them.
            per_net_buffers = {k: b.expand(count, *b.shape).clone() for k, b in batch.buffers.items()}
            return torch.vmap(function, randomness="different")(perturbations, per_net_buffers)
        results = []
        for n in range(count):
            if self.problem.uses.draws_random_numbers:  # layers that draw by themselves, such as nn.Dropout
                reseed((int(stream.seeds[n]), int(stream.step), "net"), self.problem.start.device)
            perturbation = tree_map(lambda t, n=n: t[n], perturbations)
            results.append(function(perturbation, {k: b.clone() for k, b in batch.buffers.items()}))
        return tree_map(lambda *parts: torch.stack(parts), *results)

    def evaluate(self, outputs: Tensor, parameters: NamedTensors, y: Tensor) -> Evaluation:
        """What outputs [n, B, ...] are worth, with the likelihood's own parameters [n, ...]."""
        per_perturbation = {k: v.unsqueeze(1) for k, v in parameters.items()}
        nll = -self.problem.likelihood.log_prob(outputs, y, per_perturbation)
        return Evaluation(self.objective.values(outputs, y, nll, self.by_row), nll.mean(1))

    def evaluate_own_rows(self, outputs: Tensor, parameters: NamedTensors, y: Tensor) -> Evaluation:
        """The same of perturbations that have rows of their own: outputs [n, b, ...] beside targets [n, b, ...]."""

        def nll_of(output: Tensor, own: NamedTensors, targets: Tensor) -> Tensor:
            single = {k: v[None, None] for k, v in own.items()}
            return -self.problem.likelihood.log_prob(output[None], targets, single)[0]

        nll = torch.vmap(nll_of)(outputs, dict(parameters), y)
        values = nll
        if self.objective.measure is not None:
            each = zip(outputs, y, nll, strict=True)
            values = torch.stack([self.objective.values(o[None], t, loss[None], self.by_row)[0] for o, t, loss in each])
        return Evaluation(values, nll.mean(1))

    def row_means(self, values: Tensor) -> Tensor:
        """One value a perturbation [n]."""
        return values.mean(1) if self.by_row else values


def rows_each(rows: int, perturbations: int) -> int:
    """How many rows each perturbation has to itself."""
    if rows % perturbations:
        raise BadInput(
            f"each of {perturbations} perturbations is to have rows of its own, and a batch of {rows} rows cannot be "
            f"divided among them: give a batch_size that is a multiple of {perturbations}, and leave out an epoch's "
            "last batch where it is shorter, as a DataLoader with drop_last=True does"
        )
    return rows // perturbations


@contextmanager
def frozen_batch_norms(net: nn.Module) -> Iterator[None]:
    """BatchNorm by its running statistics, so that no row's output depends on another row's noise."""
    norms = [m for m in net.modules() if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]
    for m in norms:
        m.training = False
    try:
        yield
    finally:
        for m in norms:
            m.training = True
