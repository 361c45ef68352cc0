"""Bayes by Backprop, with any noise and any prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doxa.collectors.last import Last
from doxa.contracts import Prior, Problem, Schedule
from doxa.errors import BadInput, require_whole
from doxa.gradients.variational import VariationalGradient
from doxa.kl_weights import uniform
from doxa.noise import Noise, shared
from doxa.noise.leaves import SAMPLE
from doxa.posteriors import mean_field

# Every sample has its own part of a step's streams, whose numbers have 31 bits.
MAX_SAMPLES = (1 << 31) // SAMPLE - 1


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

    nets = 1

    def __post_init__(self) -> None:
        require_whole("samples", self.samples)
        if self.samples > MAX_SAMPLES:
            raise BadInput(f"samples must be at most {MAX_SAMPLES:,} a step, got {self.samples:,}")
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

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program."""
        return Variational, self.noise, self.samples, self.antithetic, self.posterior.per

    def start(self, problem: Problem, fleet: Sequence[Variational]) -> VariationalGradient:
        return VariationalGradient(fleet, problem)

    def optimiser(self, fleet: Sequence[Variational]) -> None:
        return None

    def collector(self, fleet: Sequence[Variational]) -> Last:
        return Last()
