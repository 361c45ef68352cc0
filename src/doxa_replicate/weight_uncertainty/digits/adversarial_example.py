"""Figure 4: what an adversarial example looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.parts import kept
from doxa_replicate.show import Images, Shown
from doxa_replicate.weight_uncertainty.digits.attacks import attacker, each
from doxa_replicate.weight_uncertainty.digits.cells import directions
from doxa_replicate.weight_uncertainty.digits.rows import digits

RADII = (0.0, 0.05, 0.1, 0.2, 0.3)
MANY = 4


def run(ask: Ask) -> Numbers:
    told = {"radii": RADII, "images": MANY, "full": ask.full, "device": ask.device or "cpu"}
    return {
        "settings": {"radii": RADII, "source": "LeNet-5, five epochs" if ask.full else "a small CNN"},
        "seeds": [7],
        **kept(ask, "mnist-images", told, lambda: _made(ask)),
    }


def _made(ask: Ask) -> dict[str, Any]:
    x, y = digits(ask).test
    direction = directions(ask)
    moved = each(x[:MANY], direction[:MANY], RADII)
    rows = []
    for k in range(MANY):
        images = [moved["0"][k], (direction[k] + 1) / 2, *(moved[f"{radius:g}"][k] for radius in RADII[1:])]
        rows.append([[[round(v, 3) for v in line] for line in image.view(28, 28).tolist()] for image in images])
    wrong = {}
    for radius, images in each(x, direction, RADII).items():
        label = attacker(ask).predict_at_mean(images).mean.argmax(1)
        wrong[radius] = 100 * float((label != y).double().mean())
    return {"images": rows, "source_error": wrong}


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    wrong = ", ".join(f"{v:.1f} % at {radius}" for radius, v in numbers["source_error"].items())
    says = f"The net whose gradients they are is wrong on {wrong}."
    heads = ("original", "sign of the gradient", *(f"radius {r:g}" for r in RADII[1:]))
    return [Images("Test digits, moved", says, heads, numbers["images"])]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-4",
    place=28,
    group="mnist",
    title="Digits moved along the sign of a gradient",
    rows=("WU-21", "WU-20"),
    run=run,
    reference={"document": "one digit, its gradient's sign and perturbed versions; no numbers are printed"},
    left_open=(
        "the simple CNN: a LeNet-5, five epochs of Adam, 1e-3 falling along a cosine",
        "whether pixels are kept in range: they are",
    ),
    takes=("some seconds", "a quarter of a minute on a GPU"),
    show=show,
)
