"""The nets of table 3: what is believed or learned, at which width, and how, as written and as chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

import doxa
from doxa.contracts import Prior
from doxa.engine.contracts import Learner
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.last_minibatch import RecordsLastLoss

WIDTHS = (400, 800, 1200)
QUICK_WIDTHS = {400: 24, 800: 32, 1200: 40}
BATCH, MINIBATCHES, PREDICTION_DRAWS = 128, 468, 50
AUTHORS_DRAWS = 10  # the authors' draws for every score, called 50 in the document
RUN_PART, WRITTEN_PART, CHOSEN_PART = "run", "written", "chosen"  # parts of the columns
MEAN_START, RHO_START = (-0.2, 0.2), (-5.0, -4.0)
BEST_MIXTURE = (0.5, 0, 7)  # share, −log σ₁, −log σ₂: the document's best


class LaplaceAtDraws(doxa.priors.laplace):
    """Laplace's density alone: whoever asks for its KL must draw."""

    def log_prob(self, w: Tensor) -> Tensor:
        return super().log_prob(w)


@dataclass(frozen=True)
class DigitModel:
    """One kind of net: its learner is made of a recipe."""

    name: str
    title: str
    prior: tuple[Any, ...] | None = None  # the name of one of doxa.priors and its arguments; None for point estimates
    dropout_rate: float = 0.0  # of dropout

    @property
    def is_belief(self) -> bool:
        return self.prior is not None

    def build_prior(self, at_draws: bool = False) -> Prior:
        """Its prior; where slopes are to be taken at the draws, one of the same density without a closed KL.

        A Gaussian is then a mixture of two that are one, whose slopes the kernels know.
        """
        assert self.prior is not None
        name, *arguments = self.prior
        if at_draws and name == "gaussian":
            name, arguments = "scale_mixture", [0.5, *arguments, arguments[0] * (1 - 1e-6)]
        if at_draws and name == "laplace":
            return LaplaceAtDraws(*arguments)
        prior: Prior = getattr(doxa.priors, name)(*arguments)
        return prior


def mixture_prior(share: float, wide: float, narrow: float) -> tuple[Any, ...]:
    return "scale_mixture", share, math.exp(-wide), math.exp(-narrow)


MODELS = {
    model.name: model
    for model in (
        DigitModel("gaussian", "belief, N(0, 1)", ("gaussian", 1.0)),
        DigitModel("mixture", "belief, scale mixture", mixture_prior(*BEST_MIXTURE)),
        DigitModel("plain", "plain net"),
        DigitModel("dropout", "dropout ½", dropout_rate=0.5),
        DigitModel("laplace", "belief, Laplace b = 0.15", ("laplace", 0.15)),
        *(DigitModel(f"narrow-{s}", f"belief, −log σ = {s}", ("gaussian", math.exp(-s))) for s in (6, 7, 8)),
    )
}
TABLE_MODELS = ("gaussian", "mixture", "plain", "dropout")  # the rows of table 3, at each width
COMPARED_MODELS = ("plain", "dropout", "gaussian")  # those that figures 16, 18, 19 and 22 set side by side
NARROW_PRIORS = ("narrow-6", "narrow-7", "narrow-8")
POINT_MODELS = ("plain", "dropout")


def narrow_priors(width: int) -> tuple[str, ...]:
    """The narrow priors that are tried at a width: all with the narrowest nets, the mildest with the others."""
    return NARROW_PRIORS if width == WIDTHS[0] else NARROW_PRIORS[:1]


def fleet_models(name: str, width: int, at_draws: bool = False) -> tuple[str, ...]:
    """The models that are trained with one: narrow priors together, for the price of a few.

    With slopes at the draws every Gaussian is a mixture, so that the narrowest nets of all of them are one program.
    """
    if at_draws and width == WIDTHS[0] and name in (families := ("gaussian", "mixture", *NARROW_PRIORS)):
        return families
    return narrow_priors(width) if name in NARROW_PRIORS else (name,)


def seeds_of(options: ReplicationOptions) -> list[int]:
    """The seeds of every net that is reported."""
    return options.seed_list(1, 5)


@dataclass(frozen=True)
class TrainingRecipe:
    """How a net is trained."""

    epochs: int
    lr: float
    cosine: bool = False  # down to 0 at the end
    samples: int = 2
    local: bool = False
    kl_weight: float = 1.0
    geometric: bool = False  # the KL's split over minibatches: halving from one to the next, or even
    at_draws: bool = False  # the KL's slopes: at the draws, or in closed form where there is one
    scale: float | None = None  # at the start, with means as torch starts them; None as the document starts both

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def key(self) -> dict[str, Any]:
        """What tells it from others: a knob at its default is left out, so that a new one leaves kept parts alone."""
        return {knob.name: value for knob in fields(self) if (value := getattr(self, knob.name)) != knob.default}


AS_WRITTEN = TrainingRecipe(epochs=600, lr=1e-4)
AS_RUN = replace(AS_WRITTEN, geometric=True, at_draws=True)
HALF_OF_EPOCHS = 300  # after which the authors stored other nets: the plain ones of 400 and 800 units ended there
QUICK_EPOCHS = 4  # epochs, whatever the recipe


def recipe_at_size(options: ReplicationOptions, recipe: TrainingRecipe) -> TrainingRecipe:
    """The recipe at the size that is asked for; a few epochs learn with a higher rate."""
    return recipe if options.full else replace(recipe, epochs=QUICK_EPOCHS, lr=max(1e-3, recipe.lr))


def draw_count(options: ReplicationOptions) -> int:
    """Of a belief's weights, for every prediction."""
    return int(options.by_size(8, PREDICTION_DRAWS))


def width_at_size(options: ReplicationOptions, width: int) -> int:
    return width if options.full else QUICK_WIDTHS[width]


def start_net(options: ReplicationOptions, width: int, seed: int) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return doxa.nets.mlp(784, (width_at_size(options, width),) * 2, 10)


def build_learner(model: DigitModel, recipe: TrainingRecipe) -> Learner:
    """What learns a model by a recipe; its record tells the loss of each epoch's last minibatch."""
    return RecordsLastLoss(_learner(model, recipe))


def _learner(model: DigitModel, recipe: TrainingRecipe) -> Learner:
    if not model.is_belief:
        return doxa.learners.dropout(model.dropout_rate) if model.dropout_rate else doxa.learners.point()
    mean_field = doxa.posteriors.mean_field
    split = doxa.kl_weights.geometric() if recipe.geometric else doxa.kl_weights.uniform()
    return doxa.learners.variational(
        model.build_prior(recipe.at_draws),
        doxa.noise.local if recipe.local else doxa.noise.shared,
        samples=recipe.samples,
        posterior=mean_field(rho=RHO_START, mean=MEAN_START)
        if recipe.scale is None
        else mean_field(scale=recipe.scale),
        kl_weight=split if recipe.kl_weight == 1 else doxa.kl_weights.tempered(recipe.kl_weight, split),
    )


def learning_rate(recipe: TrainingRecipe) -> Any:
    return doxa.rates.cosine(recipe.lr) if recipe.cosine else recipe.lr


def weight_count(width: int) -> int:
    """Without biases, as the document counts them."""
    return 784 * width + width * width + 10 * width
