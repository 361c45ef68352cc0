"""The trainings behind the regression figures: fleets of beliefs about a curve, and what is read off each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import doxa
from doxa.contracts import Likelihood, Prior
from doxa.data.sets.curve import Curve, curve
from doxa.engine.contracts import Learner
from doxa.judge import lppd, lppd_bias, lppd_error
from doxa.predict.belief import Belief
from doxa_replicate.contract import Ask
from doxa_replicate.parts import kept
from doxa_replicate.weight_uncertainty.curve.measures import (
    band,
    coverage,
    epochs_to,
    grid,
    inside,
    spread,
    tail,
    thinned,
    variance_of_differences,
)

Records = dict[str, list[dict[str, Any]]]  # by setting, one for each seed

BATCH, TRAIN = 128, 1024
NOISE = 0.1  # the scale of the likelihood
MEAN, RHO = (-0.2, 0.2), (-5.0, -4.0)  # where means and rhos start, uniformly
RATES = (1e-3, 3e-3, 1e-2, 3e-2)  # of which the one is taken that ends at the lowest free energy
PLAIN_RATE = 1e-3  # of nets without a KL: Adam's own
CHOOSING = 100  # the seed of the curve by which it is chosen, no member's own
# When a free energy has converged, in words, by the key of a record: neither is the document's, which has no numbers.
CONVERGED = {
    "epochs_to_5_percent": "epochs to within 5 % of the final free energy",
    "epochs_of_95_percent": "epochs to 95 % of the way there",
}
WIDE, NARROW = (0, 1, 2), (6, 7, 8)  # −log of scales
PRIOR = 1  # −log of the scale of the single Gaussian, wherever one has to be taken
FRESH = 77  # the seed of the points on which coverage is counted, no member's own
ENSEMBLE = 25


@dataclass(frozen=True)
class Size:
    """How much of everything: the document's own, or a few seconds' worth."""

    width: int
    epochs: int
    every: int  # epochs from one RMSE to the next
    samples: int  # draws a step
    draws: int  # for the predictive density
    functions: int  # draws for the bands
    points: int  # on which bands are kept
    ensemble: int


FULL = Size(400, 1500, 20, 5, 5000, 1000, 201, ENSEMBLE)
QUICK = Size(40, 40, 5, 2, 200, 100, 81, 5)


@dataclass(frozen=True)
class Setting:
    """One line of a figure: a prior's scales as −log, how the noise enters, and the scale of the likelihood."""

    prior: tuple[int, ...] = (PRIOR,)
    local: bool = False
    noise: float = NOISE

    @property
    def name(self) -> str:
        return ", ".join(map(str, self.prior))

    def as_prior(self) -> Prior:
        scales = [math.exp(-s) for s in self.prior]
        return doxa.priors.gaussian(scales[0]) if len(scales) == 1 else doxa.priors.scale_mixture(0.5, *scales)

    def learner(self, samples: int) -> Learner:
        return doxa.learners.variational(
            self.as_prior(),
            doxa.noise.local if self.local else doxa.noise.shared,
            samples=samples,
            posterior=doxa.posteriors.mean_field(rho=RHO, mean=MEAN),
        )


# What is trained as one program, by name.
FLEETS: dict[str, tuple[Setting, ...]] = {
    "gaussian": tuple(Setting((wide,)) for wide in WIDE),
    "mixture": tuple(Setting((wide, narrow)) for wide in WIDE for narrow in NARROW),
    "local": tuple(Setting((wide,), local=True) for wide in (0, 1)),
    "likelihood 0.01": (Setting(noise=0.01),),
    "likelihood 1": (Setting(noise=1.0),),
}


def size(ask: Ask) -> Size:
    return FULL if ask.full else QUICK


def seeds(ask: Ask) -> list[int]:
    return ask.these(2, 5)


def ensemble_seeds(ask: Ask) -> list[int]:
    """Those of ensembles: more, since the spread of 25 nets differs so much from one seed to the next."""
    return ask.these(2, 20)


def settings(ask: Ask, start: float | None = None) -> dict[str, Any]:
    """What all trainings have in common, for the record; `start` is a learning rate that was not chosen."""
    own = size(ask)
    return {
        "net": f"1-{own.width}-{own.width}-1, ReLU",
        "epochs": own.epochs,
        "batch": BATCH,
        "samples": own.samples,
        "optimiser": f"Adam, {start or rate(ask):g}, halved after every third of the epochs",
        "mean": MEAN,
        "rho": RHO,
        "likelihood": NOISE,
        "training_points": TRAIN,
        "draws": {"lppd": own.draws, "bands": own.functions},
    }


def rate(ask: Ask) -> float:
    """The learning rate at the start: of several, the one with which the free energy of one belief ends lowest."""
    own = size(ask)
    told = {"rates": RATES, "width": own.width, "epochs": own.epochs, "samples": own.samples, "seed": CHOOSING}
    ends = kept(ask, "regression-rate", told | {"device": ask.device or "cpu"}, lambda: {"ends": _ends(ask)})["ends"]
    return RATES[int(np.argmin(ends))]


def _ends(ask: Ask) -> list[float]:
    ask.say("regression: which learning rate")
    learner, many = Setting().learner(size(ask).samples), len(RATES)
    lr = [falling(ask, one) for one in RATES]
    likelihood = doxa.likelihoods.gaussian(NOISE)
    beliefs = learned(ask, [learner] * many, [CHOOSING] * many, likelihood, lr=lr, watched=False)
    return [float(np.mean(energies(belief)[-tail(energies(belief)) :])) for belief in beliefs]


def falling(ask: Ask, start: float) -> Any:
    """A rate that is halved after every third of the epochs."""
    return doxa.rates.step(start, max(1, size(ask).epochs // 3))


def energies(belief: Belief) -> list[float]:
    """The free energy of every epoch: N times the mean NLL while it was learned, and the KL at its end."""
    return [TRAIN * row["nll"] + row["kl"] for row in belief.record.history]


def records(ask: Ask, fleet: str) -> Records:
    """All that is kept of a fleet's beliefs, by setting and seed; trained once, whichever figure asks first."""
    members, own = FLEETS[fleet], seeds(ask)
    told = settings(ask) | {"fleet": fleet, "seeds": own, "device": ask.device or "cpu"}
    return kept(ask, f"regression-{fleet}".replace(" ", "-"), told, lambda: _trained(ask, fleet, members, own))


def _trained(ask: Ask, fleet: str, members: Sequence[Setting], own: Sequence[int]) -> Records:
    ask.say(f"regression, {fleet}: {len(members) * len(own)} nets")
    likelihood = doxa.likelihoods.gaussian(members[0].noise)
    pairs = [(member, seed) for member in members for seed in own]
    learners = {member: member.learner(size(ask).samples) for member in members}
    beliefs = learned(ask, [learners[member] for member, _ in pairs], [seed for _, seed in pairs], likelihood)
    found: Records = {}
    for (member, seed), belief in zip(pairs, beliefs, strict=True):
        found.setdefault(member.name, []).append({"seed": seed, **record(ask, belief, seed == own[0])})
    return found


def learned(
    ask: Ask,
    learners: Sequence[Learner],
    own: Sequence[int],
    likelihood: Likelihood,
    nets: Sequence[Any] | None = None,
    lr: Sequence[Any] | None = None,
    optimiser: Any = None,
    watched: bool = True,
    trained_by: Sequence[int] | None = None,
) -> list[Belief]:
    """Beliefs about each seed's own curve, trained side by side, by that seed too unless others are given."""
    distinct = sorted(set(own))
    curves = {seed: curve(seed, TRAIN) for seed in distinct}
    place = {seed: i for i, seed in enumerate(distinct)}
    table = tuple(np.concatenate([getattr(curves[s], part) for s in distinct]) for part in ("x_train", "y_train"))
    epochs = size(ask).epochs
    net = doxa.nets.mlp(1, (size(ask).width,) * 2, 1)
    test = curves[distinct[0]]
    return doxa.fleet(
        list(nets) if nets is not None else net,
        table,
        learners=list(learners),
        likelihood=likelihood,
        seeds=list(own if trained_by is None else trained_by),
        lr=list(lr) if lr is not None else falling(ask, rate(ask)),
        rows=[np.arange(TRAIN) + TRAIN * place[seed] for seed in own],
        epochs=epochs,
        batch_size=BATCH,
        optimiser=optimiser,
        device=ask.device,
        progress=ask.progress,
        watch=partial(_rmse, test) if watched else None,
        watch_every=size(ask).every,
    )


def _rmse(test: Curve, beliefs: list[Belief]) -> list[dict[str, float]]:
    """The error of the mean prediction, wherever the curve is asked for."""
    y = torch.as_tensor(test.y_test)
    answers = doxa.predict(beliefs, test.x_test, samples=20)
    return [{"rmse": float((a.mean.cpu() - y).square().mean().sqrt())} for a in answers]


def record(ask: Ask, belief: Belief, drawn: bool) -> dict[str, Any]:
    """What the figures need to know of a trained belief; functions and bands of the one that is `drawn` alone."""
    own = size(ask)
    test, fresh = curve(FRESH), curve(FRESH + 1, 2000)
    history = belief.record.history
    energy = energies(belief)
    end = float(np.mean(energy[-tail(energy) :]))
    answer = belief.predict(test.x_test, own.draws)
    log_p = answer.log_prob(torch.as_tensor(test.y_test).to(belief.posterior.mean))
    known = inside(test.x_test[:, 0])
    found: dict[str, Any] = {
        "free_energy": thinned(energy),
        "rmse": [[k + 1, row["rmse"]] for k, row in enumerate(history) if "rmse" in row],
        "final": {"free_energy": end, "kl": history[-1]["kl"]},
        "differences": variance_of_differences(energy),
        "epochs_to_5_percent": epochs_to(energy, end + 0.05 * abs(end)),
        "epochs_of_95_percent": epochs_to(energy, end + 0.05 * (energy[0] - end)),
        "random": belief.layout.random,
        "lppd": float(lppd(log_p, answer.weights)),
        "lppd_error": float(lppd_error(log_p, answer.weights)),
        "lppd_bias": float(lppd_bias(log_p, answer.weights)),
        "lppd_inside": float(lppd(log_p[:, torch.as_tensor(known, device=log_p.device)], answer.weights)),
        **spread(_functions(belief, own.functions)),
        "coverage": coverage(belief, fresh, own.functions),
    }
    if drawn:
        x = grid(own.points)
        outputs = belief.predict(x, own.functions).outputs[..., 0]
        found["band"] = band(x[:, 0], outputs)
        found["functions"] = outputs[:10].tolist()
        found["training"] = points(belief.record.settings["seed"])
    return found


def points(seed: int, many: int = 128) -> dict[str, list[float]]:
    """A batch of a seed's training points, to be drawn."""
    own = curve(seed, TRAIN)
    return {"x": own.x_train[:many, 0].tolist(), "y": own.y_train[:many, 0].tolist()}


def _functions(belief: Belief, draws: int) -> Callable[[Any], Tensor]:
    return lambda x: belief.predict(x, draws).outputs[..., 0]


def ensembles(ask: Ask, kind: str) -> list[dict[str, Any]]:
    """Twenty-five nets, plain or trained with dropout, for each seed: bands over nets, not over draws."""
    own = ensemble_seeds(ask)
    kinds: dict[str, Learner] = {"plain": doxa.learners.point(), "dropout": doxa.learners.dropout(0.5)}
    told = settings(ask, PLAIN_RATE) | {
        "kind": kind,
        "ensemble": size(ask).ensemble,
        "seeds": own,
        "members": "each with a seed of its own for batches and masks",
        "device": ask.device or "cpu",
    }
    make = partial(_ensemble, ask, kind, kinds[kind], own)
    found: list[dict[str, Any]] = kept(ask, f"regression-ensemble-{kind}", told, make)[kind]
    return found


def _ensemble(ask: Ask, kind: str, learner: Learner, own: Sequence[int]) -> Records:
    many = size(ask).ensemble
    ask.say(f"regression, {many * len(own)} {kind} nets")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        nets = [doxa.nets.mlp(1, (size(ask).width,) * 2, 1) for _ in range(many * len(own))]
    curves = [seed for seed in own for _ in range(many)]
    beliefs = learned(
        ask,
        [learner] * len(nets),
        curves,
        doxa.likelihoods.gaussian(NOISE),
        nets,
        [falling(ask, PLAIN_RATE)] * len(nets),
        watched=False,
        trained_by=[1000 * seed + k for seed in own for k in range(many)],
    )
    found: list[dict[str, Any]] = []
    x = grid(size(ask).points)
    for k, seed in enumerate(own):
        members = beliefs[k * many : (k + 1) * many]
        functions = partial(_at_means, members)
        row: dict[str, Any] = {"seed": seed, **spread(functions)}
        if kind == "dropout":
            row["with_masks"] = spread(partial(_with_masks, members, size(ask).functions))
        if seed == own[0]:
            row |= {"band": band(x[:, 0], functions(x)), "training": points(seed)}
        found.append(row)
    return {kind: found}


def _at_means(members: Sequence[Belief], x: Any) -> Tensor:
    """What each net says with its trained weights, nothing dropped [K, B]."""
    return torch.cat([one.predict_at_mean(x).outputs[..., 0] for one in members])


def _with_masks(members: Sequence[Belief], draws: int, x: Any) -> Tensor:
    """What the nets say when units are dropped while predicting too [K·S, B]."""
    each = max(1, draws // len(members))
    return torch.cat([one.predict(x, each, seed=k).outputs[..., 0] for k, one in enumerate(members)])
