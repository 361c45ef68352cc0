"""`doxa demo`: a plain net, a dropout net and a belief on scikit-learn's digits, judged side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from doxa import data, kl_weights, learners, likelihoods, nets, noise, priors, rates
from doxa.belief import Belief
from doxa.fit import fit
from doxa.judge.attacks import fgsm
from doxa.judge.scores import error
from doxa.judge.verdict import judge

WEIGHTS = (1.0, 0.3, 0.1, 0.03)  # of the KL, tried on validation data
COLUMNS = ("error", "nll", "brier", "ece", "auroc", "pruned", "attacked")
TITLES = ("error %", "NLL", "Brier", "ECE %", "OOD AUROC", "error % at 80 % pruned", "error % under FGSM")


def run(say: Callable[[str], None], seed: int = 0, epochs: int = 100) -> dict[str, dict[str, float]]:
    """Train and judge the three; the test set is opened once, at the end."""
    digits = data.digits()
    x, x_test = digits.images()
    held = len(x) // 5
    train, validation = (x[held:], digits.y_train[held:]), (x[:held], digits.y_train[:held])
    test = (x_test, digits.y_test)
    say(f"digits: {len(train[0])} to learn from, {held} for validation, {len(x_test)} to be judged on")

    def learn(name: str, learner: Any) -> Belief:
        torch.manual_seed(seed)
        net = nets.mlp(64, (100, 100), 10)
        say(f"  learning: {name}")
        lr = rates.cosine(3e-3)
        return fit(
            net,
            train,
            learner=learner,
            likelihood=likelihoods.categorical(),
            epochs=epochs,
            batch_size=64,
            lr=lr,
            seed=seed,
        )

    beliefs = {
        "plain net": learn("plain net", learners.point()),
        "dropout": learn("dropout", learners.dropout(0.5)),
    }
    tried = {}
    for weight in WEIGHTS:
        learner = learners.variational(priors.gaussian(1.0), noise.local, kl_weight=kl_weights.tempered(weight))
        belief = learn(f"belief, KL weight {weight:g}", learner)
        tried[judge(belief, validation, samples=20)["nll"]] = (weight, belief)
    weight, belief = tried[min(tried)]
    say(f"  KL weight {weight:g} has the best validation NLL, {min(tried):.4f}")
    beliefs[f"belief (KL weight {weight:g})"] = belief
    return {name: scores(b, test) for name, b in beliefs.items()}


def scores(belief: Belief, test: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> dict[str, float]:
    """The columns of the table for one belief; out of distribution are the same digits in negative."""
    x, y = test
    labels = torch.as_tensor(y)
    found = judge(belief, test, out_of_distribution=1 - x)
    attacked = fgsm(belief, x, y, radius=0.1)
    return {
        "error": 100 * found["error"],
        "nll": found["nll"],
        "brier": found["brier"],
        "ece": 100 * found["ece"],
        "auroc": found["auroc_entropy"],
        "pruned": 100 * float(error(belief.prune(0.8).predict(x).mean, labels)),
        "attacked": 100 * float(error(belief.predict(attacked).mean, labels)),
    }
