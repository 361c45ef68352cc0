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
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.curve.measures import (
    band_widths,
    coverage,
    epochs_until,
    function_band,
    input_grid,
    inside_data,
    tail_length,
    thin_curve,
    variance_of_differences,
)

Records = dict[str, list[dict[str, Any]]]  # by setting, one for each seed

BATCH, TRAIN_SIZE = 128, 1024
NOISE = 0.1  # the scale of the likelihood
MEAN_START, RHO_START = (-0.2, 0.2), (-5.0, -4.0)  # where means and rhos start, uniformly
LEARNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2)  # of which the one is taken that ends at the lowest free energy
PLAIN_RATE = 1e-3  # of nets without a KL: Adam's own
RATE_CHOICE_SEED = 100  # the seed of the curve by which it is chosen, no member's own
# When a free energy has converged, in words, by the key of a record: neither is the document's, which has no numbers.
CONVERGED = {
    "epochs_to_5_percent": "epochs to within 5 % of the final free energy",
    "epochs_of_95_percent": "epochs to 95 % of the way there",
}
WIDE_SCALES, NARROW_SCALES = (0, 1, 2), (6, 7, 8)  # −log of scales
DEFAULT_PRIOR = 1  # −log of the scale of the single Gaussian, wherever one has to be taken
COVERAGE_SEED = 77  # the seed of the points on which coverage is counted, no member's own
ENSEMBLE_SIZE = 25


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
QUICK = CurveSize(40, 40, 5, 2, 200, 100, 81, 5)


@dataclass(frozen=True)
class CurveSetting:
    """One line of a figure: a prior's scales as −log, how the noise enters, and the scale of the likelihood."""

    prior: tuple[int, ...] = (DEFAULT_PRIOR,)
    local: bool = False
    noise: float = NOISE

    @property
    def name(self) -> str:
        return ", ".join(map(str, self.prior))

    def build_prior(self) -> Prior:
        scales = [math.exp(-s) for s in self.prior]
        return doxa.priors.gaussian(scales[0]) if len(scales) == 1 else doxa.priors.scale_mixture(0.5, *scales)

    def build_learner(self, samples: int) -> Learner:
        return doxa.learners.variational(
            self.build_prior(),
            doxa.noise.local if self.local else doxa.noise.shared,
            samples=samples,
            posterior=doxa.posteriors.mean_field(rho=RHO_START, mean=MEAN_START),
        )


# What is trained as one program, by name.
FLEETS: dict[str, tuple[CurveSetting, ...]] = {
    "gaussian": tuple(CurveSetting((wide,)) for wide in WIDE_SCALES),
    "mixture": tuple(CurveSetting((wide, narrow)) for wide in WIDE_SCALES for narrow in NARROW_SCALES),
    "local": tuple(CurveSetting((wide,), local=True) for wide in (0, 1)),
    "likelihood 0.01": (CurveSetting(noise=0.01),),
    "likelihood 1": (CurveSetting(noise=1.0),),
}


def curve_size(options: ReplicationOptions) -> CurveSize:
    return FULL if options.full else QUICK


def seeds(options: ReplicationOptions) -> list[int]:
    return options.seed_list(2, 5)


def ensemble_seeds(options: ReplicationOptions) -> list[int]:
    """Those of ensembles: more, since the spread of 25 nets differs so much from one seed to the next."""
    return options.seed_list(2, 20)


def common_settings(options: ReplicationOptions, fixed_rate: float | None = None) -> dict[str, Any]:
    """What all trainings have in common, for the record; `fixed_rate` is a learning rate that was not chosen."""
    size = curve_size(options)
    return {
        "net": f"1-{size.width}-{size.width}-1, ReLU",
        "epochs": size.epochs,
        "batch": BATCH,
        "samples": size.samples,
        "optimiser": f"Adam, {fixed_rate or learning_rate(options):g}, halved after every third of the epochs",
        "mean": MEAN_START,
        "rho": RHO_START,
        "likelihood": NOISE,
        "training_points": TRAIN_SIZE,
        "draws": {"lppd": size.draws, "bands": size.functions},
    }


def learning_rate(options: ReplicationOptions) -> float:
    """The learning rate at the start: of several, the one with which the free energy of one belief ends lowest."""
    size = curve_size(options)
    settings = {
        "rates": LEARNING_RATES,
        "width": size.width,
        "epochs": size.epochs,
        "samples": size.samples,
        "seed": RATE_CHOICE_SEED,
    }
    final_energies = cached_part(
        options,
        "regression-rate",
        settings | {"device": options.device or "cpu"},
        lambda: {"ends": _final_energies(options)},
    )["ends"]
    return LEARNING_RATES[int(np.argmin(final_energies))]


def _final_energies(options: ReplicationOptions) -> list[float]:
    options.say("regression: which learning rate")
    learner, count = CurveSetting().build_learner(curve_size(options).samples), len(LEARNING_RATES)
    lr = [halving_schedule(options, start_rate) for start_rate in LEARNING_RATES]
    likelihood = doxa.likelihoods.gaussian(NOISE)
    beliefs = train_beliefs(options, [learner] * count, [RATE_CHOICE_SEED] * count, likelihood, lr=lr, watched=False)
    return [float(np.mean(free_energies(belief)[-tail_length(free_energies(belief)) :])) for belief in beliefs]


def halving_schedule(options: ReplicationOptions, start: float) -> Any:
    """A rate that is halved after every third of the epochs."""
    return doxa.rates.step(start, max(1, curve_size(options).epochs // 3))


def free_energies(belief: Belief) -> list[float]:
    """The free energy of every epoch: N times the mean NLL while it was learned, and the KL at its end."""
    return [TRAIN_SIZE * row["nll"] + row["kl"] for row in belief.record.history]


def belief_records(options: ReplicationOptions, fleet: str) -> Records:
    """All that is kept of a fleet's beliefs, by setting and seed; trained once, whichever figure asks first."""
    members, fleet_seeds = FLEETS[fleet], seeds(options)
    settings = common_settings(options) | {"fleet": fleet, "seeds": fleet_seeds, "device": options.device or "cpu"}
    return cached_part(
        options,
        f"regression-{fleet}".replace(" ", "-"),
        settings,
        lambda: _train_fleet(options, fleet, members, fleet_seeds),
    )


def _train_fleet(
    options: ReplicationOptions, fleet: str, members: Sequence[CurveSetting], fleet_seeds: Sequence[int]
) -> Records:
    options.say(f"regression, {fleet}: {len(members) * len(fleet_seeds)} nets")
    likelihood = doxa.likelihoods.gaussian(members[0].noise)
    pairs = [(member, seed) for member in members for seed in fleet_seeds]
    learners = {member: member.build_learner(curve_size(options).samples) for member in members}
    beliefs = train_beliefs(options, [learners[member] for member, _ in pairs], [seed for _, seed in pairs], likelihood)
    records: Records = {}
    for (member, seed), belief in zip(pairs, beliefs, strict=True):
        records.setdefault(member.name, []).append(
            {"seed": seed, **summarise_belief(options, belief, seed == fleet_seeds[0])}
        )
    return records


def train_beliefs(
    options: ReplicationOptions,
    learners: Sequence[Learner],
    curve_seeds: Sequence[int],
    likelihood: Likelihood,
    nets: Sequence[Any] | None = None,
    lr: Sequence[Any] | None = None,
    optimiser: Any = None,
    watched: bool = True,
    training_seeds: Sequence[int] | None = None,
) -> list[Belief]:
    """Beliefs about each seed's own curve, trained side by side, by that seed too unless others are given."""
    distinct = sorted(set(curve_seeds))
    curves = {seed: curve(seed, TRAIN_SIZE) for seed in distinct}
    position = {seed: i for i, seed in enumerate(distinct)}
    table = tuple(
        np.concatenate([getattr(curves[s], array_name) for s in distinct]) for array_name in ("x_train", "y_train")
    )
    epochs = curve_size(options).epochs
    net = doxa.nets.mlp(1, (curve_size(options).width,) * 2, 1)
    test = curves[distinct[0]]
    return doxa.fleet(
        list(nets) if nets is not None else net,
        table,
        learners=list(learners),
        likelihood=likelihood,
        seeds=list(curve_seeds if training_seeds is None else training_seeds),
        lr=list(lr) if lr is not None else halving_schedule(options, learning_rate(options)),
        rows=[np.arange(TRAIN_SIZE) + TRAIN_SIZE * position[seed] for seed in curve_seeds],
        epochs=epochs,
        batch_size=BATCH,
        optimiser=optimiser,
        device=options.device,
        progress=options.progress,
        watch=partial(_rmse, test) if watched else None,
        watch_every=curve_size(options).every,
    )


def _rmse(test: Curve, beliefs: list[Belief]) -> list[dict[str, float]]:
    """The error of the mean prediction, wherever the curve is asked for."""
    y = torch.as_tensor(test.y_test)
    predictions = doxa.predict(beliefs, test.x_test, samples=20)
    return [{"rmse": float((prediction.mean.cpu() - y).square().mean().sqrt())} for prediction in predictions]


def summarise_belief(options: ReplicationOptions, belief: Belief, with_band: bool) -> dict[str, Any]:
    """What the figures need to know of a trained belief; functions and bands of the one that is `with_band` alone."""
    size = curve_size(options)
    test, coverage_curve = curve(COVERAGE_SEED), curve(COVERAGE_SEED + 1, 2000)
    history = belief.record.history
    energy = free_energies(belief)
    final_energy = float(np.mean(energy[-tail_length(energy) :]))
    prediction = belief.predict(test.x_test, size.draws)
    log_p = prediction.log_prob(torch.as_tensor(test.y_test).to(belief.posterior.mean))
    inside_mask = inside_data(test.x_test[:, 0])
    record: dict[str, Any] = {
        "free_energy": thin_curve(energy),
        "rmse": [[k + 1, row["rmse"]] for k, row in enumerate(history) if "rmse" in row],
        "final": {"free_energy": final_energy, "kl": history[-1]["kl"]},
        "differences": variance_of_differences(energy),
        "epochs_to_5_percent": epochs_until(energy, final_energy + 0.05 * abs(final_energy)),
        "epochs_of_95_percent": epochs_until(energy, final_energy + 0.05 * (energy[0] - final_energy)),
        "random": belief.layout.random,
        "lppd": float(lppd(log_p, prediction.weights)),
        "lppd_error": float(lppd_error(log_p, prediction.weights)),
        "lppd_bias": float(lppd_bias(log_p, prediction.weights)),
        "lppd_inside": float(lppd(log_p[:, torch.as_tensor(inside_mask, device=log_p.device)], prediction.weights)),
        **band_widths(_function_sampler(belief, size.functions)),
        "coverage": coverage(belief, coverage_curve, size.functions),
    }
    if with_band:
        x = input_grid(size.band_points)
        outputs = belief.predict(x, size.functions).outputs[..., 0]
        record["band"] = function_band(x[:, 0], outputs)
        record["functions"] = outputs[:10].tolist()
        record["training"] = training_points(belief.record.settings["seed"])
    return record


def training_points(seed: int, count: int = 128) -> dict[str, list[float]]:
    """A batch of a seed's training points, to be drawn."""
    data = curve(seed, TRAIN_SIZE)
    return {"x": data.x_train[:count, 0].tolist(), "y": data.y_train[:count, 0].tolist()}


def _function_sampler(belief: Belief, draws: int) -> Callable[[Any], Tensor]:
    return lambda x: belief.predict(x, draws).outputs[..., 0]


def ensemble_records(options: ReplicationOptions, kind: str) -> list[dict[str, Any]]:
    """Twenty-five nets, plain or trained with dropout, for each seed: bands over nets, not over draws."""
    curve_seeds = ensemble_seeds(options)
    kinds: dict[str, Learner] = {"plain": doxa.learners.point(), "dropout": doxa.learners.dropout(0.5)}
    settings = common_settings(options, PLAIN_RATE) | {
        "kind": kind,
        "ensemble": curve_size(options).ensemble,
        "seeds": curve_seeds,
        "members": "each with a seed of its own for batches and masks",
        "device": options.device or "cpu",
    }
    make = partial(_train_ensembles, options, kind, kinds[kind], curve_seeds)
    records: list[dict[str, Any]] = cached_part(options, f"regression-ensemble-{kind}", settings, make)[kind]
    return records


def _train_ensembles(options: ReplicationOptions, kind: str, learner: Learner, curve_seeds: Sequence[int]) -> Records:
    ensemble_size = curve_size(options).ensemble
    options.say(f"regression, {ensemble_size * len(curve_seeds)} {kind} nets")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        nets = [doxa.nets.mlp(1, (curve_size(options).width,) * 2, 1) for _ in range(ensemble_size * len(curve_seeds))]
    curves = [seed for seed in curve_seeds for _ in range(ensemble_size)]
    beliefs = train_beliefs(
        options,
        [learner] * len(nets),
        curves,
        doxa.likelihoods.gaussian(NOISE),
        nets,
        [halving_schedule(options, PLAIN_RATE)] * len(nets),
        watched=False,
        training_seeds=[1000 * seed + k for seed in curve_seeds for k in range(ensemble_size)],
    )
    rows: list[dict[str, Any]] = []
    x = input_grid(curve_size(options).band_points)
    for k, seed in enumerate(curve_seeds):
        members = beliefs[k * ensemble_size : (k + 1) * ensemble_size]
        functions = partial(_outputs_at_means, members)
        row: dict[str, Any] = {"seed": seed, **band_widths(functions)}
        if kind == "dropout":
            row["with_masks"] = band_widths(partial(_outputs_with_masks, members, curve_size(options).functions))
        if seed == curve_seeds[0]:
            row |= {"band": function_band(x[:, 0], functions(x)), "training": training_points(seed)}
        rows.append(row)
    return {kind: rows}


def _outputs_at_means(members: Sequence[Belief], x: Any) -> Tensor:
    """What each net says with its trained weights, nothing dropped [K, B]."""
    return torch.cat([member.predict_at_mean(x).outputs[..., 0] for member in members])


def _outputs_with_masks(members: Sequence[Belief], draws: int, x: Any) -> Tensor:
    """What the nets say when units are dropped while predicting too [K·S, B]."""
    draws_per_member = max(1, draws // len(members))
    return torch.cat([member.predict(x, draws_per_member, seed=k).outputs[..., 0] for k, member in enumerate(members)])
