"""A cell: one trained net with all that is judged of it, since nets themselves are too large to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import doxa
from doxa.judge import (
    brier,
    ece,
    ece_classwise,
    nll,
    pruned_shares,
    reliability,
    reliability_all_classes,
)
from doxa.judge import error as error_rate
from doxa.judge.metrics.calibration import Reliability
from doxa.posteriors import delta
from doxa.predict.belief import Belief
from doxa_replicate.contract import Ask
from doxa_replicate.parts import kept
from doxa_replicate.weight_uncertainty.digits.attacks import RADII, WHITE_BOX, attacker, each, signs
from doxa_replicate.weight_uncertainty.digits.models import (
    AS_WRITTEN,
    BATCH,
    MEAN,
    MODELS,
    RHO,
    WRITTEN,
    Model,
    Recipe,
    draws,
    family,
    learner,
    net,
    rate,
    seeds,
    sized,
    width_of,
)
from doxa_replicate.weight_uncertainty.digits.rows import TURNED, digits, turned

Cell = dict[str, Any]
FRACTIONS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
BINS = 10
EVERY = 10  # epochs from one point of a learning curve to the next
WATCHING = 10  # draws for such a point
REACH, PIECES = 1.0, 160  # of histograms of weights
# All by which a net is judged: with any of it changed, what was kept is no longer what is asked for.
JUDGED = {
    "fractions": FRACTIONS,
    "bins": BINS,
    "watching": [EVERY, WATCHING],
    "histogram": [REACH, PIECES],
    "radii": [RADII, WHITE_BOX],
    "turned": TURNED,
}


def cells(
    ask: Ask,
    name: str,
    width: int,
    recipe: Recipe = AS_WRITTEN,
    column: str = WRITTEN,
    model: Model | None = None,
) -> list[Cell]:
    """The cells of a model at a width, one for each seed; those of a family are trained together, and only once.

    `model` is another of the same name, with a prior that was chosen.
    """
    together, used = family(name, width, column), sized(ask, recipe)
    models = {one: MODELS[one] if model is None else model for one in together}
    members = [(one, seed) for one in together for seed in seeds(ask, one, width)]
    told = {
        "models": {one: [own.prior, own.rate] for one, own in models.items()},
        "width": width_of(ask, width),
        "recipe": used.told(),
        "batch": BATCH,
        "start": [MEAN, RHO],
        "draws": draws(ask),
        "judged": JUDGED,
        "members": members,
        "device": ask.device or "cpu",
    }
    part = f"mnist-{column}-{together[0]}-{width}"
    found: dict[str, list[Cell]] = kept(ask, part, told, lambda: _made(ask, models, members, width, used))
    return found[name]


def _made(
    ask: Ask, models: Mapping[str, Model], members: Sequence[tuple[str, int]], width: int, recipe: Recipe
) -> dict[str, list[Cell]]:
    ask.say(f"MNIST, {', '.join(models)}, {width} units, {recipe.epochs} epochs: {len(members)} nets")
    learners = {name: learner(model, recipe) for name, model in models.items()}
    halfway: dict[str, Any] = {}
    believes = next(iter(models.values())).believes
    beliefs = doxa.fleet(
        [net(ask, width, seed) for _, seed in members],
        digits(ask).train,
        learners=[learners[name] for name, _ in members],
        likelihood=doxa.likelihoods.categorical(),
        seeds=[seed for _, seed in members],
        lr=rate(recipe),
        epochs=recipe.epochs,
        batch_size=BATCH,
        device=ask.device,
        progress=ask.progress,
        watch=partial(_watch, ask, believes, recipe.epochs, halfway) if width == 1200 or believes else None,
        watch_every=ask.of(2, EVERY),
    )
    found: dict[str, list[Cell]] = {}
    for (name, seed), belief in zip(members, beliefs, strict=True):
        own = judged(ask, models[name], width, belief)
        found.setdefault(name, []).append({"seed": seed, **own, "halfway": halfway.get(_label(belief))})
    return found


def _label(belief: Belief) -> str:
    """What tells the members of a fleet apart while they are watched."""
    return f"{belief.prior!r}, {belief.record.settings['seed']}"


def _watch(
    ask: Ask, believes: bool, epochs: int, halfway: dict[str, Any], beliefs: list[Belief]
) -> list[Mapping[str, float]]:
    """The test error on the way, of the widest nets; and how far a belief can be pruned after half of the epochs."""
    x, y = digits(ask).test
    rows: list[Mapping[str, float]] = []
    for belief in beliefs:
        wide = belief.layout.slots[0].shape[0] == width_of(ask, 1200)
        rows.append({"test_error": float(error_rate(said(believes, belief, x, WATCHING), y))} if wide else {})
        if believes and len(belief.record.history) == epochs // 2:
            halfway[_label(belief)] = pruned(ask, belief)
    return rows


def said(believes: bool, belief: Belief, x: Tensor, many: int) -> Tensor:
    """Class probabilities [B, 10]: the mean over draws of a belief; of a point estimate, nothing dropped."""
    answer = belief.predict(x, many) if believes else belief.predict_at_mean(x)
    return answer.mean


def heard(believes: bool, belief: Belief) -> Belief:
    """What its own predictions are made of: a belief as it is; of a point estimate the weights, nothing dropped."""
    return belief if believes else replace(belief, posterior=delta(belief.posterior.mean, belief.layout.random))


def scores(p: Tensor, y: Tensor) -> dict[str, float]:
    """Error and ECE in per cent, NLL in nats."""
    return {
        "error": 100 * float(error_rate(p, y)),
        "nll": float(nll(p, y)),
        "ece": 100 * float(ece(p, y)),
        "ece_classwise": 100 * float(ece_classwise(p, y)),
        "brier": float(brier(p, y)),
    }


def judged(ask: Ask, model: Model, width: int, belief: Belief) -> Cell:
    x, y = digits(ask).test
    p = said(model.believes, belief, x, draws(ask))
    history = belief.record.history
    found: Cell = {
        "test": scores(p, y),
        "train_nll": history[-1]["nll"],
        "kl": history[-1]["kl"],
        "weights": weights_of(heard(model.believes, belief)),
        "curve": [[k + 1, 100 * row["test_error"]] for k, row in enumerate(history) if "test_error" in row],
        "pruned": pruned(ask, belief) if model.believes else None,
    }
    if model.rate:
        found["with_masks"] = scores(belief.predict(x, draws(ask)).mean, y)
    if width == 1200:
        shifted = said(model.believes, belief, turned(x), draws(ask))
        found |= {"shifted": scores(shifted, y), "reliability": {"clean": bins(p, y), "shifted": bins(shifted, y)}}
        found |= attacked(ask, model, belief)
    return found


def bins(p: Tensor, y: Tensor) -> dict[str, Any]:
    return {"top": _bins(reliability(p, y, BINS)), "all classes": _bins(reliability_all_classes(p, y, BINS))}


def _bins(found: Reliability) -> dict[str, Any]:
    return {
        "confidence": found.confidence.tolist(),
        "accuracy": found.accuracy.tolist(),
        "count": found.count.tolist(),
        "ece": 100 * float(found.ece),
    }


def weights_of(belief: Belief) -> dict[str, Any]:
    """One draw of the weights, biases aside: densities, and spreads and signal-to-noise layer by layer."""
    (draw,) = belief.posterior.draws(1, (0, "histogram"))
    layers = {s.name: draw.weights[s.span] for s in belief.layout.random_slots if len(s.shape) > 1}
    whole = torch.cat(list(layers.values()))
    edges = np.linspace(-REACH, REACH, PIECES + 1)
    found: dict[str, Any] = {
        "edges": [-REACH, REACH, PIECES],
        "density": _density(whole, edges),
        "std": float(whole.double().std()),
        "std_of_means": float(torch.cat([belief.posterior.mean[s.span] for s in _matrices(belief)]).double().std()),
        "layers": {name: {"density": _density(w, edges), "std": float(w.double().std())} for name, w in layers.items()},
    }
    relevance = belief.posterior.relevance
    for slot in _matrices(belief):
        ratio = relevance[slot.span].double()
        known = ratio[ratio.isfinite()]
        found["layers"][slot.name] |= {
            "signal_to_noise": float(known.mean()) if len(known) else None,
            "median_signal_to_noise": float(known.median()) if len(known) else None,
        }
    return found


def _matrices(belief: Belief) -> list[Any]:
    return [s for s in belief.layout.random_slots if len(s.shape) > 1]


def _density(w: Tensor, edges: Any) -> list[float]:
    counts, _ = np.histogram(w.detach().cpu().double().numpy(), edges)
    return [float(c) / (w.numel() * (edges[1] - edges[0])) for c in counts]


def pruned(ask: Ask, belief: Belief) -> dict[str, Any]:
    """What is left of a belief's skill without its least relevant weights, and from which layers they go."""
    x, y = digits(ask).test
    rows = [scores(belief.prune(fraction).predict(x, draws(ask)).mean, y) for fraction in FRACTIONS]
    shares = pruned_shares(belief, FRACTIONS)
    return {
        "fraction": list(FRACTIONS),
        **{key: [row[key] for row in rows] for key in ("error", "nll", "ece")},
        "shares": {name: column for name, column in shares.items() if name != "fraction"},
    }


def attacked(ask: Ask, model: Model, belief: Belief) -> Cell:
    """Scores against the radius of an attack by another net's gradients, and by the net's own."""
    x, y = digits(ask).test
    by_other = each(x, directions(ask), RADII)
    few = slice(0, int(ask.of(200, 2000)))
    own = heard(model.believes, belief)
    by_own = each(x[few], signs(own, x[few], y[few], 20 if model.believes else 1), WHITE_BOX)
    answer = partial(said, model.believes, belief, many=draws(ask))
    return {
        "transfer": {radius: scores(answer(images), y) for radius, images in by_other.items()},
        "white_box": {radius: scores(answer(images), y[few]) for radius, images in by_own.items()},
    }


_known: dict[Any, Tensor] = {}


def directions(ask: Ask) -> Tensor:
    """The signs of the attacker's gradients at all test images, the same for every net that is attacked."""
    key = (ask.full, ask.device)
    if key not in _known:
        x, y = digits(ask).test
        _known[key] = signs(attacker(ask), x, y, 1)
    return _known[key]
