"""The fast gradient sign method as the document has it: gradients of another, simple net, or of the net itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import doxa
from doxa.judge.attacks.averaged_loss import averaged_loss
from doxa.predict.belief import Belief
from doxa_replicate.contract import Ask
from doxa_replicate.weight_uncertainty.digits.rows import Digits, digits

RADII = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
WHITE_BOX = (0.0, 0.05, 0.1, 0.2)


def attacker(ask: Ask) -> Belief:
    """A LeNet-5, trained on the training rows alone."""
    return _attacker(ask.full, ask.device, digits(ask))


@functools.lru_cache(maxsize=1)
def _attacker(full: bool, device: str | None, rows: Digits) -> Belief:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Unflatten(1, (1, 28, 28)), *(doxa.nets.lenet5(1, 10, 28) if full else _small()))
    return doxa.fit(
        net,
        rows.train,
        learner=doxa.learners.point(),
        likelihood=doxa.likelihoods.categorical(),
        epochs=5 if full else 2,
        lr=doxa.rates.cosine(1e-3 if full else 3e-3),
        seed=7,
        device=device,
        progress=False,
    )


def _small() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 4, 5, stride=3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))


def signs(source: Belief, x: Tensor, y: Tensor, samples: int = 20) -> Tensor:
    """sign(∇ₓ J) at each image, J the loss of the source's averaged prediction.

    In double precision: in single, 1 − p(y) is nothing for a net that is all but certain, and half of the gradient goes
    with it, so that the surest nets would seem the hardest to attack.
    """
    loss, clean = averaged_loss(source.to(dtype=torch.float64), x.double(), y, samples, 0, 0.0, 1.0)
    return loss.gradient(clean).sign().to(x)


def moved(x: Tensor, direction: Tensor, radius: float) -> Tensor:
    """x + radius · sign, within the range of pixels."""
    return (x + radius * direction).clamp(0, 1)


def each(x: Tensor, direction: Tensor, radii: Sequence[float]) -> dict[str, Any]:
    return {f"{radius:g}": moved(x, direction, radius) for radius in radii}
