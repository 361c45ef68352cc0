"""Which settings each method tries on rows set aside inside a training split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from torch import nn

from doxa import kl_weights, learners, noise, posteriors, rates
from doxa.auto import by_fan_in
from doxa.contracts import Prior, Schedule
from doxa.engine.contracts import Learner
from doxa.nets import mlp
from doxa_replicate.weight_uncertainty.uci_regression.ended import TruncatedSchedule

LEARNING_RATE = 0.01  # falls along a cosine to a hundredth
START_SCALE = 0.05  # scale of every weight
ENSEMBLE_MEMBERS = 5  # of an ensemble
KL_WEIGHTS = (1.0, 0.3, 0.1, 0.03, 0.01)
DROPOUT_RATES = (0.01, 0.05, 0.1, 0.2, 0.3)

NetFactory = Callable[[bool], nn.Module]


@dataclass(frozen=True)
class Candidate:
    """A setting that is tried: how it learns, at which rates, and whether the net tells the noise of each input."""

    description: str
    learner: Learner
    rate: Schedule
    per_input: bool

    @property
    def likelihood(self) -> str:
        return "noise for each input" if self.per_input else "one noise"

    def __str__(self) -> str:
        return f"{self.description}, {self.likelihood}"


@cache
def truncated_cosine(share: float) -> Schedule:
    """The learning rate of a training that takes a share of the steps; the same object each time it is asked for."""
    return TruncatedSchedule(rates.cosine(LEARNING_RATE, LEARNING_RATE / 100), share)


def describe_length(share: float) -> str:
    return "all steps" if share == 1 else f"{share:g} of the steps"


def variational(net: NetFactory, full: bool) -> list[Candidate]:
    """Mean-field posteriors: KL weights by noise by length. Blundell et al. (2015), Kingma et al. (2015)."""
    kinds = (("local", True), ("shared", True), ("local", False)) if full else (("local", True), ("local", False))
    priors: dict[bool, Prior] = {per_input: by_fan_in(net(per_input)) for per_input in (True, False)}
    return [
        Candidate(
            f"KL weight {weight:g}, {kind} noise, {describe_length(share)}",
            learners.variational(
                priors[per_input],
                noise.TABLE[kind],
                posterior=posteriors.mean_field(scale=START_SCALE),
                kl_weight=kl_weights.tempered(weight),
            ),
            truncated_cosine(share),
            per_input,
        )
        for kind, per_input in kinds
        for weight in (KL_WEIGHTS if full else (0.3, 0.1))
        for share in ((0.2, 1.0) if full else (1.0,))
    ]


def dropout(net: NetFactory, full: bool) -> list[Candidate]:
    """Masks at training and at prediction: rates by length. Gal & Ghahramani (2016)."""
    return [
        Candidate(f"rate {rate:g}, {describe_length(share)}", learners.dropout(rate), truncated_cosine(share), True)
        for rate in (DROPOUT_RATES if full else (0.05, 0.1))
        for share in ((0.2, 1.0) if full else (1.0,))
    ]


def ensemble(net: NetFactory, full: bool) -> list[Candidate]:
    """Nets of one mean and one variance each, from several starts: lengths. Lakshminarayanan et al. (2017)."""
    return [
        Candidate(
            describe_length(share), learners.ensemble(learners.point(), ENSEMBLE_MEMBERS), truncated_cosine(share), True
        )
        for share in ((0.1, 0.2, 0.4, 1.0) if full else (0.3, 1.0))
    ]


METHODS: dict[str, Callable[[NetFactory, bool], list[Candidate]]] = {
    "variational": variational,
    "dropout": dropout,
    "ensemble": ensemble,
}


def one_hidden_layer(inputs: int, width: int) -> NetFactory:
    """The benchmark's net: one hidden layer, and one output or a location and a raw scale."""
    return lambda per_input: mlp(inputs, (width,), 2 if per_input else 1)
