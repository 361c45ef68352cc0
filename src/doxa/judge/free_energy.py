"""The free energy of a belief on all of its data, and its negative, the bound on the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from doxa.contracts import Estimate, Inputs, Posterior, Prior
from doxa.data.rows import as_pair, row_count, take_rows
from doxa.errors import BadInput, require_from_zero, require_whole
from doxa.judge.metrics.predictive_density import standard_error
from doxa.judge.strata import strata_of
from doxa.likelihoods import over_draws
from doxa.posteriors import MeanField
from doxa.posteriors.density import log_density
from doxa.posteriors.divergence import kl
from doxa.predict.belief import Belief
from doxa.predict.sweep import ROWS, prototype_of
from doxa.random.keys import Key, isolated_rng
from doxa.weights.layout import bind_prior


@dataclass(frozen=True)
class FreeEnergy:
    """The free energy in nats over all rows, its two parts apart, each with its Monte-Carlo error.

    F = nll + kl_weight · kl
    """

    nll: Estimate  # −E_q[log P(D | w)], summed over the rows
    kl: Estimate  # KL(q‖p), summed over the weights
    rows: int
    kl_weight: float = 1.0

    @property
    def value(self) -> float:
        return self.nll.value + self.kl_weight * self.kl.value

    @property
    def error(self) -> float:
        """The standard error of `value`: both parts are estimated from draws of their own."""
        return math.hypot(self.nll.error, self.kl_weight * self.kl.error)

    @property
    def elbo(self) -> Estimate:
        """−F: at a KL weight of 1 a lower bound on log P(D), the log evidence."""
        return Estimate(-self.value, self.error)

    def __str__(self) -> str:
        parts = {"free energy": (self.value, self.error)} | {
            name: (part.value, part.error) for name, part in (("nll", self.nll), ("kl", self.kl))
        }
        lines = [f"{self.rows:,} rows, nats over all of them (± Monte-Carlo standard error)"]
        lines += [f"  {name:<11}  {v:14.4f}{f' ± {e:.2g}' if e else ''}" for name, (v, e) in parts.items()]
        if self.kl_weight != 1:
            lines.append(f"- The KL counts {self.kl_weight:g} times: this is not the true free energy.")
        return "\n".join(lines)


def free_energy(
    belief: Belief, data: Any, samples: int = 50, seed: int = 0, kl_weight: float = 1.0, prior: Prior | None = None
) -> FreeEnergy:
    """The variational free energy of a belief on all rows of data, what learning lowers: the less, the better.

    F(D, θ) = KL(q‖p) − E_q[log P(D | w)] = −log P(D) + KL(q‖p(w | D))

    `data` is a pair (x [N, ·], y [N, ·]) of tensors or arrays, or a DataLoader of such pairs: the rows that the belief
    learned from, all of them, N rows and not batches. It is the true free energy, whatever KL weight the belief was
    learned with; another number as `kl_weight` is for those who ask. The expected log-likelihood is a mean over
    `samples` draws; the KL is exact where it is known in closed form and comes from as many draws elsewhere. Posteriors
    without a density (points, dropout, particles, samples, what was pruned) have no KL, and are refused. `prior` is
    the belief's own unless given. Hinton & van Camp (1993); Graves (2011).
    """
    samples = require_whole("samples", samples, least=2)
    require_from_zero("kl_weight", kl_weight)
    known_prior = belief.prior if prior is None else _bound_prior(belief, prior)
    if known_prior is None:
        raise BadInput("the belief has no prior, so no KL and no free energy; give one as prior=")
    divergence = divergence_from_prior(belief.posterior, known_prior, samples, (seed, "free energy", "kl"))
    rows, total, weights = 0, None, None
    for x, y in _chunks(belief, data):
        draws = belief.predict(x, samples, seed)  # the same draws for every chunk: they depend on the seed alone
        log_p = draws.log_prob(y).double().sum(1)
        total, weights, rows = log_p if total is None else total + log_p, draws.weights, rows + row_count(x)
    assert total is not None
    nll = Estimate(-float(over_draws.mean(total, weights)), _error(belief.posterior, total, weights, samples))
    return FreeEnergy(nll, divergence, rows, float(kl_weight))


def elbo(
    belief: Belief, data: Any, samples: int = 50, seed: int = 0, kl_weight: float = 1.0, prior: Prior | None = None
) -> Estimate:
    """The evidence lower bound, −`free_energy`: at most log P(D), in nats over all rows; the more, the better.

    ELBO = E_q[log P(D | w)] − KL(q‖p) ≤ log P(D)

    Jordan et al. (1999), An introduction to variational methods for graphical models.
    """
    return free_energy(belief, data, samples, seed, kl_weight, prior).elbo


def divergence_from_prior(q: Posterior, p: Prior, samples: int, key: Key) -> Estimate:
    """KL(q‖p) where q has a density: exact as `kl` has it, else from draws. Point masses are refused, by BadInput.

    KL(q‖p) = E_q[log q(w) − log p(w)]
    """
    if isinstance(q, MeanField):
        q.log_prob(q.mean)  # refuses one that was pruned
        return kl(q, p, samples, key)
    log_density(q, q.mean)  # before anything is drawn
    random, ratios, weights = len(q.scale), [], []
    for drawn in q.draws(samples, key):
        log_prior = p.log_prob(drawn.weights[:random]).sum(dtype=torch.float64)
        ratios.append(log_density(q, drawn.weights).double() - log_prior)
        weights.append(drawn.weight)
    values = torch.stack(ratios)
    shares = values.new_tensor(weights)
    return Estimate(float(over_draws.mean(values, shares)), _error(q, values, shares, samples))


def _bound_prior(belief: Belief, prior: Prior) -> Prior:
    """The prior with its middle and width as numbers, or one for each of the belief's random weights."""
    if not isinstance(prior, Prior) or isinstance(prior, type):
        raise BadInput(
            f"prior must be a prior, e.g. doxa.priors.gaussian(1.0), with log_prob and grad_log_prob; got {prior!r}"
        )
    bound: Prior = bind_prior(prior, belief.layout, prototype_of(belief.posterior))
    return bound


def _error(q: Posterior, values: Tensor, weights: Tensor | None, samples: int) -> float:
    """The standard error of the mean over a posterior's draws [S] of values."""
    return float(standard_error(values, weights, strata_of(q, samples, len(values))))


def _chunks(belief: Belief, data: Any) -> Iterator[tuple[Inputs, Tensor]]:
    """Pairs of so many rows as are swept at a time, or the batches of a loader."""
    like = prototype_of(belief.posterior)
    if not isinstance(data, DataLoader):
        x, y = as_pair(data, like, "data")
        for start in range(0, row_count(x), ROWS):
            chunk = slice(start, start + ROWS)
            yield take_rows(x, chunk), y[chunk]
        return
    rows = 0
    with isolated_rng(like.device):  # a loader that shuffles takes no one's random numbers
        for batch in data:
            several = isinstance(batch, tuple | list) and len(batch) == 2 and isinstance(batch[0], list)
            x, y = as_pair((tuple(batch[0]), batch[1]) if several else batch, like, "a batch of the DataLoader")
            rows += row_count(x)
            yield x, y
    if not rows:
        raise BadInput("the DataLoader is empty: it gave not one batch")
    # What is made of batches, or has no length, cannot tell how many rows it has.
    expected = len(data.dataset) if data.batch_sampler is not None and hasattr(data.dataset, "__len__") else rows
    if rows != expected:
        raise BadInput(f"the DataLoader gave {rows} rows and its data set has {expected}: all are wanted, each once")
