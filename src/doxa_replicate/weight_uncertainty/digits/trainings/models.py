"""The nets of table 3: what is believed or learned, at which width, and how, as written and as chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

import doxa
from doxa.contracts import Prior
from doxa.engine.contracts import Learner
from doxa_replicate.contract import ReplicationOptions

WIDTHS = (400, 800, 1200)
QUICK_WIDTHS = {400: 24, 800: 32, 1200: 40}
BATCH, PREDICTION_DRAWS = 128, 50
WRITTEN_COLUMN, CHOSEN_COLUMN = "written", "chosen"  # the columns
MEAN_START, RHO_START = (-0.2, 0.2), (-5.0, -4.0)
BEST_MIXTURE = (0.5, 0, 7)  # share, −log σ₁, −log σ₂: the document's best


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

    def build_prior(self) -> Prior:
        assert self.prior is not None
        prior: Prior = getattr(doxa.priors, self.prior[0])(*self.prior[1:])
        return prior


def mixture_prior(share: float, wide: int, narrow: int) -> tuple[Any, ...]:
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


def narrow_priors(width: int) -> tuple[str, ...]:
    """The narrow priors that are tried at a width: all with the narrowest nets, the mildest with the others."""
    return NARROW_PRIORS if width == WIDTHS[0] else NARROW_PRIORS[:1]


def fleet_models(name: str, width: int, column: str) -> tuple[str, ...]:
    """The models that are trained with one: those of the same kind of prior, for the price of a few."""
    return (
        ("gaussian", *narrow_priors(width))
        if column == WRITTEN_COLUMN and name in ("gaussian", *NARROW_PRIORS)
        else (name,)
    )


def seeds_of(options: ReplicationOptions, name: str, width: int) -> list[int]:
    """All seeds of table 3's rows; the narrow priors have one where nets are wide."""
    all_seeds = options.seed_list(1, 3)
    return all_seeds[:1] if name in NARROW_PRIORS and width > WIDTHS[0] else all_seeds


@dataclass(frozen=True)
class TrainingRecipe:
    """How a net is trained."""

    epochs: int
    lr: float
    cosine: bool = False  # down to 0 at the end
    samples: int = 2
    local: bool = False
    kl_weight: float = 1.0
    scale: float | None = None  # at the start, with means as torch starts them; None as the document starts both

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


AS_WRITTEN = TrainingRecipe(epochs=600, lr=1e-4)
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
    if not model.is_belief:
        return doxa.learners.dropout(model.dropout_rate) if model.dropout_rate else doxa.learners.point()
    posterior_family = doxa.posteriors.mean_field
    return doxa.learners.variational(
        model.build_prior(),
        doxa.noise.local if recipe.local else doxa.noise.shared,
        samples=recipe.samples,
        posterior=posterior_family(rho=RHO_START, mean=MEAN_START)
        if recipe.scale is None
        else posterior_family(scale=recipe.scale),
        kl_weight=doxa.kl_weights.tempered(recipe.kl_weight),
    )


def learning_rate(recipe: TrainingRecipe) -> Any:
    return doxa.rates.cosine(recipe.lr) if recipe.cosine else recipe.lr


def weight_count(width: int) -> int:
    """Without biases, as the document counts them."""
    return 784 * width + width * width + 10 * width
