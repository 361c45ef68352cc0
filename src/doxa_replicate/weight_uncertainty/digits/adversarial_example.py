"""Figure 4: what an adversarial example looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.show import ImageGrid, PageElement
from doxa_replicate.weight_uncertainty.digits.trainings.attacks import (
    attack_directions,
    attacked_images,
    train_attacker,
)
from doxa_replicate.weight_uncertainty.digits.trainings.rows import load_digits

RADII = (0.0, 0.05, 0.1, 0.2, 0.3)
SHOWN_IMAGES = 4


def run(options: ReplicationOptions) -> Numbers:
    settings = {"radii": RADII, "images": SHOWN_IMAGES, "full": options.full, "device": options.device or "cpu"}
    return {
        "settings": {"radii": RADII, "source": "LeNet-5, five epochs" if options.full else "a small CNN"},
        "seeds": [7],
        **cached_part(options, "mnist-images", settings, lambda: _make_images(options)),
    }


def _make_images(options: ReplicationOptions) -> dict[str, Any]:
    x, y = load_digits(options).test
    direction = attack_directions(options)
    moved_images = attacked_images(x[:SHOWN_IMAGES], direction[:SHOWN_IMAGES], RADII)
    rows = []
    for k in range(SHOWN_IMAGES):
        images = [
            moved_images["0"][k],
            (direction[k] + 1) / 2,
            *(moved_images[f"{radius:g}"][k] for radius in RADII[1:]),
        ]
        rows.append([[[round(v, 3) for v in line] for line in image.view(28, 28).tolist()] for image in images])
    error_by_radius = {}
    for radius, images in attacked_images(x, direction, RADII).items():
        predicted = train_attacker(options).predict_at_mean(images).mean.argmax(1)
        error_by_radius[radius] = 100 * float((predicted != y).double().mean())
    return {"images": rows, "source_error": error_by_radius}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    errors_text = ", ".join(f"{v:.1f} % at {radius}" for radius, v in numbers["source_error"].items())
    caption = f"The net whose gradients they are is wrong on {errors_text}."
    headers = ("original", "sign of the gradient", *(f"radius {r:g}" for r in RADII[1:]))
    return [ImageGrid("Test digits, moved", caption, headers, numbers["images"])]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-4",
    order=28,
    group="mnist",
    title="Digits moved along the sign of a gradient",
    requirements=("WU-21", "WU-20"),
    run=run,
    reference={"document": "one digit, its gradient's sign and perturbed versions; no numbers are printed"},
    left_open=(
        "the simple CNN: a LeNet-5, five epochs of Adam, 1e-3 falling along a cosine",
        "whether pixels are kept in range: they are",
    ),
    durations=("some seconds", "a quarter of a minute on a GPU"),
    show=show,
)
