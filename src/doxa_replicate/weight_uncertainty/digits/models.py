"""The nets of table 3: what is believed or learned, at which width, and how, as written and as chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

import doxa
from doxa.contracts import Prior
from doxa.engine.contracts import Learner
from doxa_replicate.contract import Ask

WIDTHS = (400, 800, 1200)
QUICK_WIDTHS = {400: 24, 800: 32, 1200: 40}
BATCH, DRAWS = 128, 50
WRITTEN, CHOSEN = "written", "chosen"  # the columns
MEAN, RHO = (-0.2, 0.2), (-5.0, -4.0)
MIXTURE = (0.5, 0, 7)  # share, −log σ₁, −log σ₂: the document's best


@dataclass(frozen=True)
class Model:
    """One kind of net: its learner is made of a recipe."""

    name: str
    title: str
    prior: tuple[Any, ...] | None = None  # the name of one of doxa.priors and its arguments; None for point estimates
    rate: float = 0.0  # of dropout

    @property
    def believes(self) -> bool:
        return self.prior is not None

    def as_prior(self) -> Prior:
        assert self.prior is not None
        made: Prior = getattr(doxa.priors, self.prior[0])(*self.prior[1:])
        return made


def mixture(share: float, wide: int, narrow: int) -> tuple[Any, ...]:
    return "scale_mixture", share, math.exp(-wide), math.exp(-narrow)


MODELS = {
    model.name: model
    for model in (
        Model("gaussian", "belief, N(0, 1)", ("gaussian", 1.0)),
        Model("mixture", "belief, scale mixture", mixture(*MIXTURE)),
        Model("plain", "plain net"),
        Model("dropout", "dropout ½", rate=0.5),
        Model("laplace", "belief, Laplace b = 0.15", ("laplace", 0.15)),
        *(Model(f"narrow-{s}", f"belief, −log σ = {s}", ("gaussian", math.exp(-s))) for s in (6, 7, 8)),
    )
}
TABLE = ("gaussian", "mixture", "plain", "dropout")  # the rows of table 3, at each width
NARROW = ("narrow-6", "narrow-7", "narrow-8")


def narrow(width: int) -> tuple[str, ...]:
    """The narrow priors that are tried at a width: all with the narrowest nets, the mildest with the others."""
    return NARROW if width == WIDTHS[0] else NARROW[:1]


def family(name: str, width: int, column: str) -> tuple[str, ...]:
    """The models that are trained with one: those of the same kind of prior, for the price of a few."""
    return ("gaussian", *narrow(width)) if column == WRITTEN and name in ("gaussian", *NARROW) else (name,)


def seeds(ask: Ask, name: str, width: int) -> list[int]:
    """All seeds of table 3's rows; the narrow priors have one where nets are wide."""
    own = ask.these(1, 3)
    return own[:1] if name in NARROW and width > WIDTHS[0] else own


@dataclass(frozen=True)
class Recipe:
    """How a net is trained."""

    epochs: int
    lr: float
    cosine: bool = False  # down to 0 at the end
    samples: int = 2
    local: bool = False
    kl_weight: float = 1.0
    scale: float | None = None  # at the start, with means as torch starts them; None as the document starts both

    def told(self) -> dict[str, Any]:
        return dict(vars(self))


AS_WRITTEN = Recipe(epochs=600, lr=1e-4)
QUICK = 4  # epochs, whatever the recipe


def sized(ask: Ask, recipe: Recipe) -> Recipe:
    """The recipe at the size that is asked for; a few epochs learn with a higher rate."""
    return recipe if ask.full else replace(recipe, epochs=QUICK, lr=max(1e-3, recipe.lr))


def draws(ask: Ask) -> int:
    """Of a belief's weights, for every prediction."""
    return int(ask.of(8, DRAWS))


def width_of(ask: Ask, width: int) -> int:
    return width if ask.full else QUICK_WIDTHS[width]


def net(ask: Ask, width: int, seed: int) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return doxa.nets.mlp(784, (width_of(ask, width),) * 2, 10)


def learner(model: Model, recipe: Recipe) -> Learner:
    if not model.believes:
        return doxa.learners.dropout(model.rate) if model.rate else doxa.learners.point()
    family = doxa.posteriors.mean_field
    return doxa.learners.variational(
        model.as_prior(),
        doxa.noise.local if recipe.local else doxa.noise.shared,
        samples=recipe.samples,
        posterior=family(rho=RHO, mean=MEAN) if recipe.scale is None else family(scale=recipe.scale),
        kl_weight=doxa.kl_weights.tempered(recipe.kl_weight),
    )


def rate(recipe: Recipe) -> Any:
    return doxa.rates.cosine(recipe.lr) if recipe.cosine else recipe.lr


def weights(width: int) -> int:
    """Without biases, as the document counts them."""
    return 784 * width + width * width + 10 * width
