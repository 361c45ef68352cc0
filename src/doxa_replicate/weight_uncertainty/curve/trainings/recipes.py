"""What is trained for the curve's figures: how much of everything, which beliefs, and how each column learns them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import doxa
from doxa.contracts import Prior
from doxa.data.sets.curve import Curve, curve, even_curve
from doxa.engine.contracts import Learner
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.last_minibatch import RecordsLastLoss
from doxa_replicate.weight_uncertainty.local_reparameterisation.shared_biases import SharedBiases

COLUMNS = (AS_RUN, AS_WRITTEN, CHOSEN)
BATCH, MINIBATCHES, TRAIN_SIZE = 128, 8, 1024
NOISE = 0.1  # the scale of the likelihood
MEAN_START, RHO_START = (-0.2, 0.2), (-5.0, -4.0)  # where means and rhos start, uniformly
WIDE_SCALES, NARROW_SCALES = (0, 1, 2), (6, 7, 8)  # −log of scales
DEFAULT_PRIOR = 1  # −log of the scale of the single Gaussian, wherever one has to be taken
SWEEP_PRIOR = {AS_RUN: 0, AS_WRITTEN: DEFAULT_PRIOR, CHOSEN: DEFAULT_PRIOR}  # of the sweep over likelihoods
ENSEMBLE_SIZE = 25
# Epochs that the authors trained their mixtures, by the scales' −log.
MIXTURE_EPOCHS = {
    **{"0, 6": 4500, "0, 7": 10_000, "0, 8": 25_000},
    **{"1, 6": 3000, "1, 7": 6000, "1, 8": 15_000},
    **{"2, 6": 2500, "2, 7": 3000, "2, 8": 6000},
}


@dataclass(frozen=True)
class CurveSize:
    """How much of everything: the document's own, or a few seconds' worth."""

    width: int
    epochs: int
    every: int  # epochs from one RMSE to the next
    samples: int  # draws a step
    draws: int  # for the predictive density
    functions: int  # draws for the bands
    band_points: int  # on which bands are kept
    ensemble: int


FULL = CurveSize(400, 1500, 20, 5, 5000, 1000, 201, ENSEMBLE_SIZE)
QUICK = CurveSize(40, 20, 5, 2, 200, 50, 81, 5)


def curve_size(options: ReplicationOptions) -> CurveSize:
    return FULL if options.full else QUICK


def epochs_at_size(options: ReplicationOptions, epochs: int) -> int:
    """So many epochs of the document's 1,500, or longer trainings; a quick one has a few, whatever they are."""
    return epochs if options.full else min(QUICK.epochs, epochs)


def seeds(options: ReplicationOptions) -> list[int]:
    return options.seed_list(2, 10)


@dataclass(frozen=True)
class CurveData:
    """Which curve a seed learns, and where it is asked for."""

    make: Callable[..., Curve]
    one_for_all: bool  # whether all seeds learn the same points
    limits: tuple[float, float]  # of x, where it is asked for
    test_seed: int
    watched_points: int  # of these so many while it is learned
    watched_draws: int
    spacing: str

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "make"}

    def training_seed(self, seed: int) -> int:
        return 0 if self.one_for_all else seed

    def training(self, seed: int) -> Curve:
        return self.make(self.training_seed(seed), TRAIN_SIZE)

    def test(self) -> Curve:
        return self.make(self.test_seed)

    def watched(self, seed: int) -> Curve:
        return self.make(self.training_seed(seed), TRAIN_SIZE, self.watched_points)


EVENLY = CurveData(even_curve, True, (-0.2, 1.4), 0, 128, 10, "evenly spaced, one data set for all seeds")
AT_RANDOM = CurveData(curve, False, (-0.5, 1.5), 77, 1000, 20, "uniform, a data set for each seed")


@dataclass(frozen=True)
class CurveRecipe:
    """How a column trains its beliefs, and which points it learns."""

    rate: float
    halve_every: int  # epochs
    geometric: bool = False  # the KL's split over minibatches: halving from one to the next, or even
    at_draws: bool = False  # the KL's slopes: at the draws, or in closed form where there is one
    shared_biases: bool = False  # with local noise: biases drawn once a pass, or for each row
    eps: float = 1e-8  # of Adam
    keeps_lowest: tuple[str, ...] = ()  # fleets whose beliefs are those of the lowest last-minibatch loss
    epochs: Mapping[str, int] = field(default_factory=dict)  # by prior, where they are not the document's 1,500
    data: CurveData = AT_RANDOM

    def schedule(self, options: ReplicationOptions) -> Any:
        """A rate that is halved every so many epochs."""
        return doxa.rates.step(self.rate, max(1, self.halve_every * curve_size(options).epochs // FULL.epochs))

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "epochs": dict(self.epochs), "data": self.data.as_dict()}


# Adam's eps is for a summed loss; here it is the mean over a minibatch.
RECIPE_AS_RUN = CurveRecipe(
    rate=1e-3,
    halve_every=5000,
    geometric=True,
    at_draws=True,
    shared_biases=True,
    eps=1e-8 / BATCH,
    keeps_lowest=("gaussian", "local"),
    epochs=MIXTURE_EPOCHS,
    data=EVENLY,
)
HALVED_TWICE = CurveRecipe(rate=1e-2, halve_every=500)  # as written; the rate is chosen

# Where a column as run is not what its authors ran.
SEEDS_AS_RUN = (
    "as run seeds differ in start, batch order and noise; the authors' repeats, whose generator was set anew after the "
    "start, differ in the start alone"
)
KL_AS_RUN = (
    "the KL of which a last minibatch's loss as run has 1/255 is that after the epoch's last step, by 16 draws or in "
    "closed form; the authors' is of the minibatch's own five draws"
)


@dataclass(frozen=True)
class CurveSetting:
    """One line of a figure: a prior's scales as −log, how the noise enters, and the scale of the likelihood."""

    prior: tuple[int, ...] = (DEFAULT_PRIOR,)
    local: bool = False
    noise: float = NOISE

    @property
    def name(self) -> str:
        return ", ".join(map(str, self.prior))

    def build_prior(self, at_draws: bool = False) -> Prior:
        """Its prior; a Gaussian whose slopes are to be taken at the draws is a mixture of two that are one."""
        scales = [math.exp(-s) for s in self.prior]
        if len(scales) == 1 and not at_draws:
            return doxa.priors.gaussian(scales[0])
        return doxa.priors.scale_mixture(0.5, *(scales if len(scales) > 1 else (scales[0], scales[0] * (1 - 1e-6))))

    def build_learner(self, samples: int, recipe: CurveRecipe = HALVED_TWICE) -> Learner:
        """What learns it by a recipe; its record tells the loss of each epoch's last minibatch."""
        learner: Learner = doxa.learners.variational(
            self.build_prior(recipe.at_draws and not self.local),
            doxa.noise.local if self.local else doxa.noise.shared,
            samples=samples,
            posterior=doxa.posteriors.mean_field(rho=RHO_START, mean=MEAN_START),
            kl_weight=doxa.kl_weights.geometric() if recipe.geometric else doxa.kl_weights.uniform(),
        )
        return RecordsLastLoss(SharedBiases(learner) if self.local and recipe.shared_biases else learner)


def fleet_members(column: str, fleet: str) -> tuple[CurveSetting, ...]:
    """What is trained as one program, by name."""
    sweep_prior = (SWEEP_PRIOR[column],)
    return {
        "gaussian": tuple(CurveSetting((wide,)) for wide in WIDE_SCALES),
        "mixture": tuple(CurveSetting((wide, narrow)) for wide in WIDE_SCALES for narrow in NARROW_SCALES),
        "local": tuple(CurveSetting((wide,), local=True) for wide in (0, 1)),
        "likelihood 0.01": (CurveSetting(sweep_prior, noise=0.01),),
        "likelihood 1": (CurveSetting(sweep_prior, noise=1.0),),
    }[fleet]
