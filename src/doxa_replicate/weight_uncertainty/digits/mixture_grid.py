"""The grid of scale mixtures, chosen on validation rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import doxa
from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.parts import kept
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.digits.cells import said, scores
from doxa_replicate.weight_uncertainty.digits.models import (
    AS_WRITTEN,
    BATCH,
    MEAN,
    RHO,
    Model,
    draws,
    learner,
    mixture,
    net,
    rate,
    sized,
    width_of,
)
from doxa_replicate.weight_uncertainty.digits.rows import digits

SHARES, WIDE, NARROW = (0.25, 0.5, 0.75), (0, 1, 2), (6, 7, 8)
WIDTH, SEED = 400, 100


def best_mixture(ask: Ask) -> tuple[float, int, int]:
    """Share, −log σ₁ and −log σ₂ of the mixture with the lowest validation NLL."""
    found = tried(ask)
    share, wide, narrow = min(found, key=lambda key: found[key]["nll"]).split(", ")
    return float(share), int(wide), int(narrow)


def tried(ask: Ask) -> dict[str, Any]:
    """The validation scores of every mixture, by its share and scales."""
    return {key: scored for share in SHARES for key, scored in tried_with(ask, share).items()}


def tried_with(ask: Ask, share: float) -> dict[str, Any]:
    """The third of the grid with one share of the wide component: a part of its own, for the grid takes minutes."""
    recipe = sized(ask, AS_WRITTEN)
    told = {"recipe": recipe.told(), "width": width_of(ask, WIDTH), "seed": SEED, "device": ask.device or "cpu"}
    told |= {"grid": [[share], WIDE, NARROW], "draws": draws(ask), "batch": BATCH, "start": [MEAN, RHO]}
    found: dict[str, Any] = kept(ask, f"mnist-mixture-grid-{share:g}", told, lambda: _tried(ask, share))["tried"]
    return found


def run(ask: Ask) -> Numbers:
    found = tried(ask)
    best = min(found, key=lambda key: found[key]["nll"])
    return {
        "settings": {"units": WIDTH, "recipe": sized(ask, AS_WRITTEN).told(), "chosen_by": "validation NLL"},
        "seeds": [SEED],
        "tried": found,
        "best": best,
        "lowest_error": min(found, key=lambda key: found[key]["error"]),
    }


def _tried(ask: Ask, share: float) -> dict[str, Any]:
    grid = list(product(WIDE, NARROW))
    ask.say(f"MNIST, {len(grid)} scale mixtures with π = {share:g}, {WIDTH} units")
    models = [Model("mixture", "", mixture(share, *scales)) for scales in grid]
    recipe, rows = sized(ask, AS_WRITTEN), digits(ask)
    beliefs = doxa.fleet(
        net(ask, WIDTH, SEED),
        rows.learn,
        learners=[learner(model, recipe) for model in models],
        likelihood=doxa.likelihoods.categorical(),
        seeds=SEED,
        lr=rate(recipe),
        epochs=recipe.epochs,
        batch_size=BATCH,
        device=ask.device,
        progress=ask.progress,
    )
    x, y = rows.choose
    return {
        "tried": {
            f"{share:g}, {wide}, {narrow}": scores(said(True, belief, x, draws(ask)), y)
            for (wide, narrow), belief in zip(grid, beliefs, strict=True)
        }
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    tried, best = found["numbers"]["tried"], found["numbers"]["best"]
    rows = []
    for key, of in tried.items():
        mark = "**" * (key == best)
        rows.append([f"{mark}{key}{mark}", f"{of['nll']:.4f}", f"{of['error']:.2f}", f"{of['ece']:.2f}"])
    says = f"Lowest NLL: {best}; lowest error: {found['numbers']['lowest_error']}."
    return [Table("Validation rows", ("π, −log σ₁, −log σ₂", "NLL", "error %", "ECE %"), rows, says=says)]


ARTEFACT = Artefact(
    name="weight-uncertainty/mixture-grid",
    place=19,
    group="mnist",
    title="Twenty-seven scale mixtures, by validation rows",
    rows=("WU-43",),
    run=run,
    reference={"best": "π = ½, −log σ₁ = 0, −log σ₂ = 7"},
    left_open=(
        "which width, and by which rows the best was found: 400 units, 10,000 rows of the training set",
        "which subset of the grid was run: all of it",
    ),
    takes=("some seconds", "6 minutes on a GPU"),
    show=show,
)
