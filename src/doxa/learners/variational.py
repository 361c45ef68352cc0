"""Bayes by Backprop, with any noise and any prior.

For any q the evidence splits into log p(D) = −F(q) + KL(q‖p(w|D)): whatever lowers the free energy F brings q nearer to
the posterior, and F needs no evidence to be computed. Divided by the rows, N, it is a mean over data, which a minibatch
estimates without bias, and a KL that is paid once however many rows there are.

The expectation over q is estimated by draws w = m + sε, whose randomness does not depend on m and s, so that slopes may
be taken inside it (Kingma & Welling, 2014, Auto-encoding variational Bayes). `gradients/variational.py` has them. Draws
±ε in a pair cancel whatever is odd in ε from the estimate, at the price that the number of independent draws is halved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doxa.collectors.last import Last
from doxa.contracts import Prior, Problem, Schedule
from doxa.errors import BadInput, require_whole
from doxa.gradients.variational import VariationalGradient
from doxa.kl_weights.uniform import Uniform
from doxa.learners.example import Example
from doxa.noise import Noise, flipout, local, shared
from doxa.posteriors import mean_field
from doxa.random import streams


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
    kl_weight: Schedule = field(default_factory=Uniform)

    nets = 1

    def __post_init__(self) -> None:
        require_whole("samples", self.samples)
        if self.samples > streams.MAX_SAMPLES:
            raise BadInput(f"samples must be at most {streams.MAX_SAMPLES:,} a step, got {self.samples:,}")
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
        """What learners must have in common to work as one program: not the numbers of prior and KL weight."""
        return type(self), self.noise, self.samples, self.antithetic, self.posterior.per

    def start(self, problem: Problem, fleet: Sequence[Variational]) -> VariationalGradient:
        return VariationalGradient(fleet, problem)

    def optimiser(self, fleet: Sequence[Variational]) -> None:
        return None

    def collector(self, fleet: Sequence[Variational]) -> Last:
        return Last()


variational = Variational
EXAMPLES = {
    "variational": {
        "shared": Example(Variational, "map"),
        "local": Example(lambda prior: Variational(prior, local), "map"),
        "flipout": Example(lambda prior: Variational(prior, flipout), "map"),
        "two_samples": Example(lambda prior: Variational(prior, local, 2), "map"),
        "antithetic": Example(lambda prior: Variational(prior, flipout, 4, antithetic=True), "map"),
        "per_layer": Example(lambda prior: Variational(prior, flipout, 2, posterior=mean_field("layer")), "map"),
    }
}
