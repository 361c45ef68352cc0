"""Bayes by Backprop, with any noise and any prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from doxa.batch_norm import averaged
from doxa.contracts import Batch, Estimate, Moment, Posterior, Prior, Problem, Schedule, Training
from doxa.errors import BadInput, whole
from doxa.flat import FAR, fill_scale, finish
from doxa.kl_weights import uniform
from doxa.layout import not_finite, part, settle
from doxa.learners.evidence import nll
from doxa.noise import Leaves, Noise, shared
from doxa.noise.leaves import Piece, noise_of
from doxa.posteriors import MeanField, mean_field
from doxa.posteriors.divergence import CLOSED, kl
from doxa.posteriors.mean_field import gather, spread
from doxa.randomness import fill_normal, reseed


@dataclass(frozen=True)
class Variational:
    """The posterior nearest to the true one, by stochastic gradients of the free energy.

    min F/N = −(1/N) Σᵢ E_q log p(yᵢ | xᵢ, w) + (β/N) KL(q‖p)

    `kl_weight` is the schedule of β, 1 for the true free energy; `samples` draws a step are averaged, in pairs ±ε if
    `antithetic`. Gradients with respect to mean and scale are pulled back by hand from the leaves the net ran on, and
    the KL's are added in closed form: nothing is differentiated through the sampling.
    Blundell et al. (2015), Weight uncertainty in neural networks.
    """

    prior: Prior
    noise: Noise = shared
    samples: int = 1
    antithetic: bool = False
    posterior: mean_field = field(default_factory=mean_field)
    kl_weight: Schedule = field(default_factory=uniform)

    def __post_init__(self) -> None:
        whole("samples", self.samples)
        if isinstance(self.prior, type) or not hasattr(self.prior, "grad_log_prob"):
            raise BadInput(f"prior must be one of doxa.priors, e.g. doxa.priors.gaussian(1.0); got {self.prior!r}")
        if not isinstance(self.noise, Noise):
            raise BadInput(f"noise must be one of doxa.noise, e.g. doxa.noise.local; got {self.noise!r}")
        if isinstance(self.kl_weight, type) or not callable(self.kl_weight):
            raise BadInput(
                f"kl_weight must be one of doxa.kl_weights, e.g. doxa.kl_weights.tempered(0.1); got {self.kl_weight!r}"
            )
        if self.antithetic and self.samples % 2:
            raise BadInput(f"antithetic draws come in pairs: samples must be even, got {self.samples}")

    def start(self, problem: Problem) -> Training:
        return VariationalTraining(self, problem)


@dataclass(frozen=True)
class Part:
    """A piece of the leaves with what the training adds to it: prior, gradients, ε for the prior."""

    piece: Piece
    prior: Prior
    by_mean: Tensor
    by_scale: Tensor
    epsilon: Tensor | None
    holds_epsilon: bool  # whether by_scale is where the draw's ε lies


class VariationalTraining:
    """A mean-field Gaussian at work: flat vectors of means and rhos, filled gradients, no autograd through either."""

    streams = 1

    def __init__(self, learner: Variational, problem: Problem) -> None:
        self.learner, self.problem = learner, problem
        self.prior = settle(learner.prior, problem.layout, problem.start)
        self.closed = CLOSED.get(type(self.prior))
        self.line = None if self.closed is None else self.closed.line(self.prior)
        start = learner.posterior.start(problem.layout, problem.start, problem.seed)
        self.groups = start.groups
        self.mean = start.mean.requires_grad_()
        self.rho = start.rho.requires_grad_()
        self.mean.grad, self.rho.grad = torch.zeros_like(start.mean), torch.zeros_like(start.rho)
        self.scale = torch.empty_like(start.mean[: problem.layout.random])
        # With one scale a weight, the gradient of the scale is turned into that of rho where it lies.
        self.scale_gradient = self.rho.grad if self.groups is None else torch.empty_like(self.scale)
        once = self.once = learner.samples == 1
        self.leaves = Leaves(
            problem.layout,
            problem.uses,
            learner.noise,
            self.mean.detach(),
            self.scale,
            gradient=self.mean.grad if once else torch.zeros_like(start.mean),
            # With one sample, ε is needed no longer than until it has become the gradient of the scale.
            epsilon=self.scale_gradient if once else None,
            rho=self.rho.detach() if self.groups is None else None,
        )
        needs_draw = self.closed is None and self.leaves.ruled and not learner.noise.draws_weights
        self.extra_epsilon = torch.empty_like(self.scale) if needs_draw else None
        self.parts = [self._part(piece) for piece in self.leaves.pieces]
        self._buffers = {k: b.clone() for k, b in problem.buffers.items()}
        self.parameters: Sequence[Tensor] = [self.mean, self.rho]
        self.noise = noise_of(problem.layout, problem.uses, learner.noise)

    def step(self, batches: Sequence[Batch], moment: Moment) -> Tensor:
        (batch,) = batches
        samples = self.learner.samples
        weight = self.learner.kl_weight(moment) / self.problem.size
        if self.groups is not None:
            self._spread_scale()
        total, seen = torch.zeros_like(self.scale[:1]).squeeze(), []
        for s in range(samples):
            key = (*moment.key, s // 2 if self.learner.antithetic else s)
            sign = -1.0 if self.learner.antithetic and s % 2 else 1.0
            reseed(key, self.scale.device)
            self.leaves.draw((*key, "weights"), sign, renew=s == 0)
            buffers = self._buffers if samples == 1 else {k: b.clone() for k, b in self._buffers.items()}
            with self.leaves.at_work(sign):
                loss = nll(self.problem, self.leaves.first, buffers, batch) / samples
            loss.backward()
            total += loss.detach()
            seen.append(buffers)
            if self.extra_epsilon is not None:
                fill_normal(self.extra_epsilon, (*key, "prior"), sign=sign)
            self._collect(weight / samples, first=s == 0)
        if samples > 1:
            for name, value in averaged(seen).items():
                self._buffers[name].copy_(value)
        self._finish(weight)
        return total

    def _part(self, piece: Piece) -> Part:
        assert self.mean.grad is not None
        epsilon = piece.epsilon if self.extra_epsilon is None or not piece.ruled else self.extra_epsilon[piece.span]
        return Part(
            piece,
            part(self.prior, piece.span),
            self.mean.grad[piece.span],
            self.scale_gradient[piece.span],
            epsilon,
            holds_epsilon=self.once and not piece.ruled,
        )

    @torch.no_grad()
    def _spread_scale(self) -> None:
        rho = self.rho.detach()
        self.scale.copy_(spread(fill_scale(torch.empty_like(rho), rho), self.groups))

    @torch.no_grad()
    def _collect(self, weight: float, first: bool) -> None:
        """Pull one sample's gradients back to mean and scale; without a closed KL, those of −log p at its draw too."""
        for own in self.parts:
            piece, slope = own.piece, None
            if self.closed is None and piece.ruled:
                assert own.epsilon is not None
                slope = own.prior.grad_log_prob(torch.addcmul(piece.mean, piece.scale, own.epsilon))
                piece.gradient.sub_(slope, alpha=weight)
                slope.mul_(own.epsilon)
            elif self.closed is None:
                # The net ran on this very draw: one gradient serves both.
                piece.gradient.sub_(own.prior.grad_log_prob(piece.flat), alpha=weight)
            if not own.holds_epsilon:
                self.leaves.pull(piece, own.by_scale, add=not first)
            if slope is not None:
                own.by_scale.sub_(slope, alpha=weight)
        if self.leaves.gradient is not self.mean.grad:
            assert self.mean.grad is not None
            if first:
                self.mean.grad.copy_(self.leaves.gradient)
            else:
                self.mean.grad.add_(self.leaves.gradient)

    @torch.no_grad()
    def _finish(self, weight: float) -> None:
        """Add the KL's gradient (its entropy alone, where the rest came with the draws) and turn scale into rho."""
        centre, precision = self.line or (0.0, 0.0)
        for own in self.parts:
            piece, holds_epsilon = own.piece, own.holds_epsilon
            if self.closed is not None and self.line is None:
                if holds_epsilon:
                    own.by_scale.mul_(own.by_mean)
                    holds_epsilon = False
                self.closed.add_slopes(own.prior, piece.mean, piece.scale, weight, own.by_mean, own.by_scale)
            gradients = own.by_mean, own.by_scale
            finish(piece.mean, piece.scale, piece.rho, weight, centre, precision, *gradients, holds_epsilon)
        if self.groups is not None:
            assert self.rho.grad is not None
            torch.mul(gather(self.scale_gradient, self.groups), self.rho.detach().sigmoid(), out=self.rho.grad)

    def posterior(self) -> Posterior:
        return MeanField(self.mean.detach().clone(), self.rho.detach().clone(), self.groups)

    def complexity(self) -> Estimate:
        return kl(self.posterior(), self.prior)

    def trouble(self) -> str | None:
        rho = self.rho.detach()
        if not bool((rho.abs() < FAR).all()):
            return f"the scales ran away: rho reaches {float(rho.abs().max()):.3g}"
        return not_finite(self.problem.layout, self.mean.detach())

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "rho": self.rho, **{f"buffers.{k}": b for k, b in self._buffers.items()}}

    @property
    def buffers(self) -> tuple[dict[str, Tensor], ...]:
        return ({k: b.clone() for k, b in self._buffers.items()},)
