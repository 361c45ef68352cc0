"""What the demo learns: small digits and a curve, with who contends for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from doxa import data, kl_weights, learners, likelihoods, nets, noise, priors, rates
from doxa.data.card import Card
from doxa.data.sets.curve import CARD as CURVE
from doxa.data.sets.digits import CARD as DIGITS
from doxa.predict.belief import Belief
from doxa.training.fit import fit

DROPOUT_RATES = (0.1, 0.25, 0.5)  # of dropout, tried on validation rows
KL_WEIGHTS = (1.0, 0.3, 0.1, 0.03)  # of the KL, tried there too
ATTACK_RADIUS = 0.1  # of the attack, where pixels run from 0 to 1
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Contender:
    """A way to learn, with the settings to choose from.

    `epochs` and `lr` had the lowest mean validation NLL of three seeds on one grid for all: 60 or 100 epochs at 0.003,
    0.01 or 0.03 on digits, 200 or 400 at 0.005, 0.01 or 0.02 on the curve. Early stopping is what keeps a net without
    a prior from overfitting: it gets it, and the belief does without.
    """

    name: str
    candidates: dict[str, Any]
    epochs: int
    lr: float

    @property
    def stops_early(self) -> bool:
        return self.name != "belief"

    def settings(self, choice: str) -> dict[str, Any]:
        """What it learned with, in words."""
        return {
            "learner": choice,
            "chosen among": ", ".join(self.candidates) if len(self.candidates) > 1 else "–",
            "prior": "none" if self.stops_early else "N(0, 1) on every weight",
            "epochs": self.epochs,
            "epoch kept": "the best on validation rows" if self.stops_early else "the last",
            "learning rate": f"{self.lr:g}, falling as a cosine",
        }


@dataclass(frozen=True)
class DemoTask:
    """What there is to learn, and how it is judged: `evidence_options` says what `evidence` needs besides the test
    rows."""

    contenders: tuple[Contender, ...]
    net: Callable[[], Any]
    likelihood: Any
    batch_size: int
    train: Pair
    validation: Pair
    test: Pair
    evidence_options: dict[str, Any]
    settings: dict[str, Any]

    def learn(self, contender: Contender, learner: Any, seed: int) -> Belief:
        torch.manual_seed(seed)
        return fit(
            self.net(),
            self.train,
            learner=learner,
            likelihood=self.likelihood,
            epochs=contender.epochs,
            batch_size=self.batch_size,
            lr=rates.cosine(contender.lr),
            validation=self.validation,
            validation_samples=8 if contender.stops_early else 4,  # the belief's is looked at, not acted on
            # So patient that it never stops: the epoch with the best validation NLL is kept.
            patience=contender.epochs if contender.stops_early else None,
            seed=seed,
            progress=False,
        )


def digits_task(epochs: int | None) -> DemoTask:
    digits = data.digits()
    x, x_test = digits.images()
    held_out = len(x) // 5
    return DemoTask(
        contenders=(
            Contender("plain net", {"maximum likelihood": learners.point()}, epochs or 100, 1e-2),
            Contender(
                "dropout", {f"dropout {rate:g}": learners.dropout(rate) for rate in DROPOUT_RATES}, epochs or 100, 1e-2
            ),
            Contender("belief", {f"KL weight {w:g}": _variational(w) for w in KL_WEIGHTS}, epochs or 60, 3e-2),
        ),
        net=lambda: nets.mlp(64, (100, 100), 10),
        likelihood=likelihoods.categorical(),
        batch_size=64,
        train=(x[held_out:], digits.y_train[held_out:]),
        validation=(x[:held_out], digits.y_train[:held_out]),
        test=(x_test, digits.y_test),
        evidence_options={
            "about": _describe_data(DIGITS),
            "out_of_distribution": 1 - x_test,
            "attack_radius": ATTACK_RADIUS,
        },
        settings={
            "net": "64-100-100-10, ReLU",
            "batch size": 64,
            "rows learned from": len(x) - held_out,
            "rows for validation": held_out,
            "out of distribution": "the same digits in negative",
            "FGSM radius": ATTACK_RADIUS,
        },
    )


def curve_task(epochs: int | None) -> DemoTask:
    curve, truth = data.curve(), data.curve(noise=0.0)
    held_out = len(curve.x_train) // 4
    train = (curve.x_train[held_out:], curve.y_train[held_out:])
    inside = ((curve.x_test >= 0.0) & (curve.x_test <= 0.5)).flatten()
    return DemoTask(
        contenders=(
            Contender("plain net", {"maximum likelihood": learners.point()}, epochs or 400, 2e-2),
            Contender("belief", {"KL weight 1": _variational(1.0)}, epochs or 400, 1e-2),
        ),
        net=lambda: nets.mlp(1, (50, 50), 2),
        likelihood=likelihoods.gaussian_per_input(),
        batch_size=128,
        train=train,
        validation=(curve.x_train[:held_out], curve.y_train[:held_out]),
        test=(curve.x_test[inside], curve.y_test[inside]),
        evidence_options={
            "about": _describe_data(CURVE),
            "out_of_distribution": curve.x_test[~inside][::3],  # as many as inside
            "train": train,
            "truth": (truth.x_test, truth.y_test),
        },
        settings={
            "net": "1-50-50-2, ReLU",
            "batch size": 128,
            "rows learned from": len(train[0]),
            "rows for validation": held_out,
            "noise of the data": "learned, its size depends on x",
            "judged on": "0 ≤ x ≤ 0.5, where the training data lie",
            "out of distribution": "the rest of −0.5 ≤ x ≤ 1.5",
        },
    )


TASKS = {"digits": digits_task, "curve": curve_task}


def _variational(weight: float) -> Any:
    return learners.variational(priors.gaussian(1.0), noise.local, kl_weight=kl_weights.tempered(weight))


def _describe_data(card: Card) -> dict[str, str]:
    return {"name": card.name, "source": card.citation, "licence": card.licence}
