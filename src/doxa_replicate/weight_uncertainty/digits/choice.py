"""The chosen column: for each net the recipe whose validation NLL is lowest, found before a test row is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import doxa
from doxa_replicate.contract import Ask
from doxa_replicate.parts import kept
from doxa_replicate.weight_uncertainty.digits.cells import Cell, cells, said, scores
from doxa_replicate.weight_uncertainty.digits.mixture_grid import best_mixture
from doxa_replicate.weight_uncertainty.digits.models import (
    BATCH,
    CHOSEN,
    MODELS,
    WIDTHS,
    Model,
    Recipe,
    draws,
    learner,
    mixture,
    net,
    rate,
    sized,
    width_of,
)
from doxa_replicate.weight_uncertainty.digits.rows import digits

SEED = 100  # of the nets that are chosen by, none that is reported
KL_WEIGHTS, SCALES = (1.0, 0.3, 0.1, 0.03), (0.01, 0.03)
EPOCHS = {"believes": (30, 100), "plain": (5, 20, 100), "dropout": (50, 100, 200)}


def candidates(ask: Ask, name: str, width: int) -> list[Recipe]:
    """What is tried: KL weight, start and length for beliefs, with local noise; when to stop for point estimates.

    Start and length are chosen with the narrowest nets, and taken over by the others.
    """
    model = MODELS[name]
    if not model.believes:
        return [Recipe(epochs, 1e-3, cosine=True) for epochs in EPOCHS["dropout" if model.rate else "plain"]]
    pairs = [(epochs, scale) for epochs in EPOCHS["believes"] for scale in SCALES]
    if width > WIDTHS[0]:
        best = candidates(ask, name, WIDTHS[0])[choice(ask, name, WIDTHS[0])["best"]]
        pairs = [(best.epochs, best.scale)]
    return [
        Recipe(epochs, 1e-3, cosine=True, samples=1, local=True, kl_weight=weight, scale=scale)
        for weight in KL_WEIGHTS
        for epochs, scale in pairs
    ]


def model_of(ask: Ask, name: str) -> Model:
    """The model as it is chosen: the mixture is the best one of its grid."""
    if name != "mixture":
        return MODELS[name]
    return replace(MODELS[name], prior=mixture(*best_mixture(ask)))


def choice(ask: Ask, name: str, width: int) -> dict[str, Any]:
    """All that was tried, with its validation scores, and which was best."""
    tried, model = [sized(ask, recipe) for recipe in candidates(ask, name, width)], model_of(ask, name)
    told = {
        "model": [name, model.prior, model.rate],
        "width": width_of(ask, width),
        "recipes": [recipe.told() for recipe in tried],
        "batch": BATCH,
        "draws": draws(ask),
        "seed": SEED,
        "device": ask.device or "cpu",
    }
    found: dict[str, Any] = kept(
        ask, f"mnist-choice-{name}-{width}", told, lambda: {"tried": _tried(ask, model, width, tried)}
    )
    best = min(range(len(tried)), key=lambda k: found["tried"][k]["nll"])
    return {"tried": [recipe.told() | own for recipe, own in zip(tried, found["tried"], strict=True)], "best": best}


def _tried(ask: Ask, model: Model, width: int, recipes: Sequence[Recipe]) -> list[dict[str, float]]:
    ask.say(f"MNIST, {model.title}, {width} units: choosing among {len(recipes)}")
    rows = digits(ask)
    found: dict[int, dict[str, float]] = {}
    for epochs in sorted({recipe.epochs for recipe in recipes}):
        own = [k for k, recipe in enumerate(recipes) if recipe.epochs == epochs]
        beliefs = doxa.fleet(
            net(ask, width, SEED),
            rows.learn,
            learners=[learner(model, recipes[k]) for k in own],
            likelihood=doxa.likelihoods.categorical(),
            seeds=SEED,
            lr=[rate(recipes[k]) for k in own],
            epochs=epochs,
            batch_size=BATCH,
            device=ask.device,
            progress=ask.progress,
        )
        for k, belief in zip(own, beliefs, strict=True):
            found[k] = scores(said(model.believes, belief, rows.choose[0], draws(ask)), rows.choose[1])
    return [found[k] for k in range(len(recipes))]


def chosen(ask: Ask, name: str, width: int) -> list[Cell]:
    """The cells of a model at a width, by the recipe that was chosen, learned from all training rows."""
    best = choice(ask, name, width)["best"]
    return cells(ask, name, width, candidates(ask, name, width)[best], CHOSEN, model_of(ask, name))


def columns(ask: Ask, names: Sequence[str], width: int = WIDTHS[-1]) -> dict[str, dict[str, list[Cell]]]:
    """The cells of some models in both columns."""
    return {
        "as written": {name: cells(ask, name, width) for name in names},
        "chosen": {name: chosen(ask, name, width) for name in names},
    }
