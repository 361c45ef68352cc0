"""A belief without a knob to turn: KL weight, stopping and noise are chosen on rows set aside in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor, nn

from doxa.auto.by_fan_in import by_fan_in
from doxa.auto.committee import best_noise, committee, folds
from doxa.auto.fold_training import FoldTraining
from doxa.auto.kl_candidates import KL_WEIGHTS, KLWeight, describe_weight, members_folder, require_candidates
from doxa.contracts import Likelihood, Prior
from doxa.errors import BadInput, Interrupted, require_whole
from doxa.judge.recalibration import calibration_levels
from doxa.likelihoods.categorical import Categorical
from doxa.likelihoods.gaussian import Gaussian, GaussianLearned
from doxa.noise import Noise, local
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws
from doxa.terminal.interrupt import gentle_interrupt

__all__ = ["ChosenBelief", "KLWeightTrial", "choose"]

FOLDS = 5
MOST_STEPS = 4000  # at most, of each training
DRAWS = 100  # that score a setting
RATE = 5e-3


@dataclass(frozen=True)
class KLWeightTrial:
    """One setting that was tried: the NLL it reached on the first fold, and after how many epochs."""

    kl_weight: KLWeight
    nll: float
    epochs: int


@dataclass(frozen=True)
class ChosenBelief:
    """A committee of beliefs, each learned without one fold of the rows, and how it was chosen.

    `held_out_draws` are the draws [S, B, ·] for the rows `held_out_rows` [B], each by the member that had not seen it.
    `levels` [2, K] say which share of those rows lay below which level of the draws: the same, if they were perfectly
    calibrated.
    """

    belief: Belief
    kl_weight: KLWeight
    noise: float | None  # standard deviation of y; None for classes
    trials: tuple[KLWeightTrial, ...]
    held_out_rows: Tensor
    held_out_draws: Draws
    levels: Tensor | None  # None for classes


def choose(
    net: Callable[[], nn.Module],
    x: Tensor,
    y: Tensor,
    *,
    classes: bool,
    kl_weights: Sequence[KLWeight] = KL_WEIGHTS,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float = RATE,
    prior: Prior | None = None,
    noise: Noise = local,
    members: int | None = None,
    seed: int = 0,
    device: torch.device | str | None = None,
    folder: str | PathLike[str] | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> ChosenBelief:
    """A committee of variational beliefs, each learned without one of five folds of the rows x [N, ·], or of more.

    y are class indices [N] or, not `classes`, targets [N, ·] in the units of the net's outputs. The first fold decides
    on the KL weight (numbers, names or schedules of `doxa.kl_weights`); every member stops when the NLL of its own fold
    has long not improved, `epochs` at the latest; the noise of a regression is the one that fits all folds best.
    `members` is 5 for fewer than 2,000 rows and 3 for more; asked for more than five, there are as many folds.
    The prior, unless given, is N(0, 1/fan-in) a weight. Members learn on the `device`; the committee is on the CPU.
    With a `folder` every training is saved there, and the same call goes on where it was stopped.
    Krogh & Vedelsby (1994), Neural network ensembles, cross validation, and active learning.
    """
    if len(x) < 2:
        raise BadInput(f"there must be at least 2 rows to learn from, got n_samples={len(x)}")
    candidates = require_candidates(kl_weights)
    count = _member_count(members, len(x))
    default_batch = min(256, max(8, 2 ** round(math.log2(len(x) / 24))))
    batch = default_batch if batch_size is None else require_whole("batch_size", batch_size)
    default_epochs = min(1000, max(10, MOST_STEPS // math.ceil(0.8 * len(x) / batch)))
    max_epochs = default_epochs if epochs is None else require_whole("epochs", epochs)
    training = FoldTraining(
        net,
        x,
        y,
        folds=folds(y if classes else torch.zeros(len(y)), max(count, min(FOLDS, len(x))), seed),
        members=count,
        likelihood=Categorical() if classes else GaussianLearned(0.5 * (float(y.std()) or 1.0)),
        prior=by_fan_in(net()) if prior is None else prior,
        noise=noise,
        epochs=max_epochs,
        batch_size=batch,
        lr=lr,
        seed=seed,
        device=device,
        folder=None if folder is None else Path(folder),
        progress=progress,
    )
    with gentle_interrupt() as stop:
        say(f"trying KL weights {', '.join(map(describe_weight, candidates))}")
        first_beliefs = training.fit([(0, weight) for weight in candidates], "weights")
        trials = [
            _score_kl_weight(training, weight, belief, classes, say)
            for weight, belief in zip(candidates, first_beliefs, strict=True)
        ]
        if stop.is_set():
            saved = "nothing was saved" if folder is None else f"saved in {folder}; the same call goes on from there"
            raise Interrupted(f"stopped after the KL weights were tried; {saved}", None, stop.signal)
        best = min(range(len(trials)), key=lambda k: trials[k].nll)
        weight, beliefs = candidates[best], [first_beliefs[best]]
        if count > 1:
            name = describe_weight(weight)
            say(f"{count - 1} more {'member' if count == 2 else 'members'}, KL weight {name}")
            beliefs += training.fit([(k, weight) for k in range(1, count)], members_folder(weight))
    return _form_committee(training, beliefs, trials, weight, classes)


def _score_kl_weight(
    training: FoldTraining, weight: KLWeight, belief: Belief, classes: bool, say: Callable[[str], None]
) -> KLWeightTrial:
    """What a KL weight came to on the first fold."""
    x, y = training.held_out_pair(0)
    scores = [row["validation_nll"] for row in belief.record.history]
    draws = belief.predict(x, DRAWS, training.seed)
    nll = _mean_nll(draws, y) if classes else best_noise(draws.outputs, y, draws.weights)[1]
    trial = KLWeightTrial(weight, nll, min(range(len(scores)), key=scores.__getitem__) + 1)
    say(f"KL weight {describe_weight(weight)}: NLL {nll:.4f} on rows set aside, after {trial.epochs} epochs")
    return trial


def _form_committee(
    training: FoldTraining,
    beliefs: Sequence[Belief],
    trials: Sequence[KLWeightTrial],
    kl_weight: KLWeight,
    classes: bool,
) -> ChosenBelief:
    """One belief of all members, with noise and calibration by what each says of the rows it has not seen."""
    held_out_rows = torch.cat([training.held_out(k) for k in range(len(beliefs))])
    y = training.y[held_out_rows]
    parts = [b.predict(training.held_out_pair(k)[0], DRAWS, training.seed) for k, b in enumerate(beliefs)]
    outputs, weights = torch.cat([part.outputs for part in parts], 1), parts[0].weights
    sigma = None if classes else best_noise(outputs, y, weights)[0]
    likelihood: Likelihood = Categorical() if sigma is None else Gaussian(sigma)
    return ChosenBelief(
        committee(beliefs, likelihood),
        kl_weight,
        sigma,
        tuple(trials),
        held_out_rows,
        Draws(outputs, likelihood, {}, weights),
        levels=None if sigma is None else calibration_levels(outputs, sigma, y, weights),
    )


def _member_count(members: int | None, rows: int) -> int:
    """How many members there are to be, each with a fold of its own."""
    if members is None:
        return min(5 if rows < 2000 else 3, rows)
    count = require_whole("members", members)
    if count > rows:
        raise BadInput(f"members must be at most {rows}, the number of rows, to have a fold each; got {count}")
    return count


def _mean_nll(draws: Draws, y: Tensor) -> float:
    return -float(draws.log_predictive(y).mean())
