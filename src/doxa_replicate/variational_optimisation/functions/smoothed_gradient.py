"""The gradient of a function, smoothed by a Gaussian: its own where the function is quadratic, whatever the scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.search.functions import himmelblau
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.functions.estimates import Function, gaussian, slopes

SCALES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
D, POPULATION, ERRORS = 5, 20, 3.0
POINT = (1.0, 2.0)  # on Himmelblau's function
UNBIASED = Claim(
    "C-VO-1",
    "The smoothed gradient of a quadratic is its gradient",
    f"every component of the mean of all estimates is within {ERRORS:g} standard errors of the gradient, at every σ",
)


def quadratic(seed: int) -> tuple[Function, Tensor, Tensor]:
    """½ wᵀ A w + bᵀ w + 3 with A and b by chance, a point and the gradient there."""
    by = torch.Generator().manual_seed(seed)
    root, b, point = (torch.randn(n, D, dtype=torch.float64, generator=by).squeeze(0) for n in (D, 1, 1))
    a = root @ root.T / D
    return lambda w: 0.5 * (w @ a * w).sum(-1) + w @ b + 3, point, a @ point + b


def run(ask: Ask) -> Numbers:
    repeats, own = int(ask.of(2_000, 100_000)), list(range(len(SCALES)))  # a seed for each scale
    f, point, gradient = quadratic(0)
    by_scale = {f"{scale:g}": off(f, point, gradient, scale, repeats, k) for k, scale in enumerate(SCALES)}
    there = torch.tensor(POINT, dtype=torch.float64)
    curved = {
        f"{scale:g}": off(himmelblau, there, steepest(there), scale, repeats, k) for k, scale in enumerate(SCALES)
    }
    largest = max(max(abs(z) for z in of["errors"]) for of in by_scale.values())
    return {
        "settings": {"dimensions": D, "population": POPULATION, "estimates": repeats, "scales": SCALES},
        "seeds": own,
        "quadratic": by_scale,
        "himmelblau": curved,
        "bias": {f"{scale:g}": scale**2 * float(laplacian_slope(there).norm()) / 2 for scale in SCALES},
        "verdicts": [
            UNBIASED.judged(
                largest < ERRORS,
                {"largest error, in standard errors": largest},
                None,
                own,
                f"{D} dimensions, {len(SCALES)} scales, {repeats:,} estimates of {POPULATION} draws each",
            )
        ],
    }


def off(f: Function, point: Tensor, gradient: Tensor, scale: float, repeats: int, seed: int) -> dict[str, Any]:
    """How far the mean of all estimates is from the gradient: as a length, and by component in standard errors."""
    found = slopes(f, gaussian(point, scale), POPULATION, False, repeats, seed)[:, :-1]
    error = found.std(0) / math.sqrt(repeats)
    away = found.mean(0) - gradient
    return {
        "distance": float(away.norm()),
        "chance": float(error.norm()),  # how far it would be off without any bias
        "length": float(gradient.norm()),
        "errors": (away / error).tolist(),
    }


def steepest(w: Tensor) -> Tensor:
    """The gradient of Himmelblau's function."""
    x, y = w
    a, b = x * x + y - 11, x + y * y - 7
    return torch.stack([4 * x * a + 2 * b, 2 * a + 4 * y * b])


def laplacian_slope(w: Tensor) -> Tensor:
    """∇Δf of Himmelblau's function, of which σ²/2 is the bias: f has no derivatives beyond the fourth.

    E[∇f(w + σε)] = ∇f + (σ²/2) ∇Δf for f without derivatives beyond the fourth
    """
    x, y = w
    return torch.stack([24 * x + 4, 24 * y + 4])


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    scales = [float(s) for s in numbers["quadratic"]]
    lines = [Line("Himmelblau: σ²/2 ‖∇Δf‖", scales, list(numbers["bias"].values()), dashed=True)]
    lines += [
        Line(f"{name}, found", scales, [of["distance"] for of in numbers[key].values()])
        for key, name in (("quadratic", "quadratic"), ("himmelblau", "Himmelblau"))
    ]
    rows = [
        [s, f"{of['distance']:.3g}", f"{of['chance']:.3g}", f"{max(abs(z) for z in of['errors']):.2f}"]
        for s, of in numbers["quadratic"].items()
    ]
    heads = ("σ", "distance from the gradient", "by chance alone", "largest component, in standard errors")
    length = next(iter(numbers["quadratic"].values()))["length"]
    return [
        Chart(
            "How far the mean of all estimates is from the gradient",
            "Of the quadratic only chance is left, which grows where σ falls; of Himmelblau's function there is a bias "
            "that grows with σ².",
            "σ",
            "‖mean of estimates − ∇f‖",
            lines,
            log_x=True,
            log_y=True,
        ),
        Table(f"The quadratic, whose gradient is {length:.3g} long", heads, rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/smoothed-gradient",
    place=1,
    group="functions",
    title="The smoothed gradient of a quadratic, and of a function that is none",
    rows=("VO-02", "VO-08"),
    run=run,
    claims=(UNBIASED,),
    reference={
        "document": "by a Taylor series to second order, E[f(w + σε) ε]/σ is the gradient; no numbers are printed"
    },
    left_open=(
        "which function: a quadratic in five dimensions with coefficients by chance; beside it Himmelblau's at (1, 2)",
    ),
    takes=("a second", "a quarter of a minute"),
    show=show,
)
