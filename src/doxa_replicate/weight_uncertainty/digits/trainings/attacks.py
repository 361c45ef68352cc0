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
from doxa_replicate.weight_uncertainty.digits.trainings.rows import Digits, Rows, load_digits

RADII = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
WHITE_BOX = (0.0, 0.05, 0.1, 0.2)
AUTHORS_RADII, AUTHORS_IMAGES = (0.0, 0.05, 0.1, 0.25), 1024


def _lenet(channels: int = 1) -> nn.Sequential:
    return doxa.nets.lenet5(channels, 10, 28)


def _two_convolutions() -> nn.Sequential:
    """1→16→32 channels of 5×5, each pooled, and a linear map: the net that the document's reference describes."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(1568, 10)),
    )


def _one_convolution() -> nn.Sequential:
    """The net of one convolution that stands in early branches of the authors' repository."""
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 10))


def _small() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 4, 5, stride=3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))


LENET = "LeNet-5"
# The net, epochs, rate at the start (falling along a cosine or constant) and batch of each source of gradients.
SOURCES: dict[str, tuple[Any, int, Any, int]] = {
    LENET: (_lenet, 5, doxa.rates.cosine(1e-3), 128),
    "two convolutions": (_two_convolutions, 10, 1e-2, 100),
    "one convolution": (_one_convolution, 10, 1e-3, 128),
}
SOURCE_WORDS = {
    LENET: "LeNet-5, five epochs of Adam, 1e-3 falling along a cosine, batches of 128",
    "two convolutions": "1→16→32 channels of 5×5 with padding and pooling, ten epochs of Adam at 1e-2, batches of 100",
    "one convolution": "16 channels of 5×5 with padding and pooling, ten epochs of Adam at 1e-3, batches of 128",
}


def train_attacker(options: ReplicationOptions, source: str = LENET) -> Belief:
    """A simple net, trained on the training rows alone."""
    return _train_attacker(options.full, options.device, load_digits(options), source)


@functools.lru_cache(maxsize=len(SOURCES))
def _train_attacker(full: bool, device: str | None, data: Digits, source: str) -> Belief:
    build, epochs, lr, batch = SOURCES[source]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Unflatten(1, (1, 28, 28)), *(build() if full else _small()))
    return doxa.fit(
        net,
        data.train,
        learner=doxa.learners.point(),
        likelihood=doxa.likelihoods.categorical(),
        epochs=epochs if full else 2,
        lr=lr if full else doxa.rates.cosine(3e-3),
        batch_size=batch,
        seed=7,
        device=device,
        progress=False,
    )


def gradient_signs(source: Belief, x: Tensor, y: Tensor, samples: int = 20) -> Tensor:
    """sign(∇ₓ J) at each image, J the loss of the source's averaged prediction.

    In double precision: in single, 1 − p(y) is nothing for a net that is all but certain, and half of the gradient goes
    with it, so that the surest nets would seem the hardest to attack.
    """
    loss, clean_images = averaged_loss(source.to(dtype=torch.float64), x.double(), y, samples, 0, 0.0, 1.0)
    return loss.gradient(clean_images).sign().to(x)


def move_images(x: Tensor, direction: Tensor, radius: float, clamped: bool = True) -> Tensor:
    """x + radius · sign, within the range of pixels where it is `clamped`."""
    moved = x + radius * direction
    return moved.clamp(0, 1) if clamped else moved


def attacked_images(x: Tensor, direction: Tensor, radii: Sequence[float], clamped: bool = True) -> dict[str, Any]:
    return {f"{radius:g}": move_images(x, direction, radius, clamped) for radius in radii}


def authors_rows(options: ReplicationOptions) -> dict[str, Rows]:
    """The first 1,024 images of training and of test rows: those that the authors attacked were of the former."""
    data, count = load_digits(options), int(options.by_size(100, AUTHORS_IMAGES))
    return {name: (x[:count], y[:count]) for name, (x, y) in (("training", data.train), ("test", data.test))}


_directions: dict[Any, Tensor] = {}


def attack_directions(options: ReplicationOptions, source: str = LENET, rows: str = "all test") -> Tensor:
    """The signs of a source's gradients at some rows, the same for every net that is attacked."""
    key = (options.full, options.device, source, rows)
    if key not in _directions:
        x, y = load_digits(options).test if rows == "all test" else authors_rows(options)[rows]
        _directions[key] = gradient_signs(train_attacker(options, source), x, y, 1)
    return _directions[key]
