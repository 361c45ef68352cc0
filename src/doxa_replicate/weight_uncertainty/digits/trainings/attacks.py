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
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.digits.trainings.rows import Digits, load_digits

RADII = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
WHITE_BOX = (0.0, 0.05, 0.1, 0.2)


def train_attacker(options: ReplicationOptions) -> Belief:
    """A LeNet-5, trained on the training rows alone."""
    return _train_attacker(options.full, options.device, load_digits(options))


@functools.lru_cache(maxsize=1)
def _train_attacker(full: bool, device: str | None, data: Digits) -> Belief:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Unflatten(1, (1, 28, 28)), *(doxa.nets.lenet5(1, 10, 28) if full else _small_cnn()))
    return doxa.fit(
        net,
        data.train,
        learner=doxa.learners.point(),
        likelihood=doxa.likelihoods.categorical(),
        epochs=5 if full else 2,
        lr=doxa.rates.cosine(1e-3 if full else 3e-3),
        seed=7,
        device=device,
        progress=False,
    )


def _small_cnn() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 4, 5, stride=3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))


def gradient_signs(source: Belief, x: Tensor, y: Tensor, samples: int = 20) -> Tensor:
    """sign(∇ₓ J) at each image, J the loss of the source's averaged prediction.

    In double precision: in single, 1 − p(y) is nothing for a net that is all but certain, and half of the gradient goes
    with it, so that the surest nets would seem the hardest to attack.
    """
    loss, clean_images = averaged_loss(source.to(dtype=torch.float64), x.double(), y, samples, 0, 0.0, 1.0)
    return loss.gradient(clean_images).sign().to(x)


def move_images(x: Tensor, direction: Tensor, radius: float) -> Tensor:
    """x + radius · sign, within the range of pixels."""
    return (x + radius * direction).clamp(0, 1)


def attacked_images(x: Tensor, direction: Tensor, radii: Sequence[float]) -> dict[str, Any]:
    return {f"{radius:g}": move_images(x, direction, radius) for radius in radii}
