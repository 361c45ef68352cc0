"""A function without slopes, and the smooth one above it that a Gaussian makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.show import Chart, Contours, Line, Shown

STEP, REACH = 0.5, 10.0
SMALLEST, LARGEST = 0.02, 3.0
LINES = (0.2, 0.6, 1.5)  # σ of the curves that are drawn
NEAR = 0.1  # a σ so small that U is nearly f
FAR = 9.0  # standard deviations, beyond which a Gaussian has no mass that counts
LEVELS = (-0.25, -0.2, -0.15, -0.1, -0.05, 0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01)
ROUNDING = 1e-12
ABOVE = Claim(
    "C-VO-4",
    "The expected value is never below the lowest value",
    f"U(μ, σ) ≥ min f at every point of the grid, to within {ROUNDING:g}",
)


def steps() -> tuple[Tensor, Tensor]:
    """Where sin w / w is held, and its value there: the middles of cells from −∞ to ∞, as far as they count."""
    far = int((REACH + FAR * LARGEST) / STEP) + 1
    middles = STEP * torch.arange(-far, far + 1, dtype=torch.float64)
    return middles, torch.sinc(middles / torch.pi)


def staircase(w: Tensor) -> Tensor:
    """The sinc function, held over cells that are a step wide."""
    return torch.sinc(STEP * torch.round(w / STEP) / torch.pi)


def expected(mean: Tensor, scale: Tensor) -> Tensor:
    """U(μ, σ) = Σ_k f_k P(w in cell k): the integral itself, for f is constant in each cell."""
    middles, values = steps()
    edges = torch.cat([middles - STEP / 2, middles[-1:] + STEP / 2])
    below = torch.special.ndtr((edges - mean[..., None]) / scale[..., None])
    return (below.diff(dim=-1) * values).sum(-1)


def run(ask: Ask) -> Numbers:
    across, along = ask.of((41, 11), (121, 31))
    mean = torch.linspace(-REACH, REACH, across, dtype=torch.float64)
    scale = torch.logspace(math.log10(SMALLEST), math.log10(LARGEST), along, dtype=torch.float64)
    surface = torch.stack([expected(mean, s.expand_as(mean)) for s in scale])
    lowest = float(steps()[1].min())
    margin = float(surface.min()) - lowest
    fine = torch.linspace(-REACH, REACH, 401, dtype=torch.float64)
    middles = steps()[0]
    inner = middles[middles.abs() <= REACH]
    narrow = expected(inner, torch.full_like(inner, NEAR))
    return {
        "settings": {"step": STEP, "means": across, "scales": along},
        "f": {"x": fine.tolist(), "y": staircase(fine).tolist()},
        "curves": {f"{s:g}": expected(fine, torch.full_like(fine, s)).tolist() for s in LINES},
        "surface": {"mean": mean.tolist(), "scale": scale.tolist(), "height": surface.tolist()},
        "lowest": lowest,
        "narrow": float((narrow - staircase(inner)).abs().max()),
        "verdicts": [
            ABOVE.judged(
                margin >= -ROUNDING,
                {"lowest U − min f": margin, "min f": lowest},
                None,
                (),
                f"{across} × {along} points of μ and σ, σ from {SMALLEST:g} to {LARGEST:g}; the integral is exact",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    x, surface = numbers["f"]["x"], numbers["surface"]
    curves = [Line(f"U, σ = {s}", x, y) for s, y in numbers["curves"].items()]
    return [
        Chart(
            "The discretised sinc, and U along μ",
            f"No slope leads anywhere on the steps; U has one everywhere. Lowest f: −{-numbers['lowest']:.3f}.",
            "w, μ",
            "f, U",
            [Line("f", x, numbers["f"]["y"], dashed=True), *curves],
        ),
        Chart(
            "U(μ, σ)",
            f"The more ink, the higher. In the middle of every step U is within {numbers['narrow']:.2g} of f at "
            f"σ = {NEAR:g}.",
            "μ",
            "σ",
            contours=Contours("U", surface["mean"], surface["scale"], surface["height"], LEVELS),
            log_y=True,
        ),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/discretised-sinc",
    place=4,
    group="functions",
    title="A function of steps, and its expected value under a Gaussian",
    rows=("VO-07", "VO-13"),
    run=run,
    claims=(ABOVE,),
    reference={
        "document": "U is differentiable where the function is not, and tends to it as σ → 0; no numbers are printed"
    },
    left_open=(
        "how the function is made discrete: sin w / w, held over cells half a unit wide",
        "how U is drawn: by lines of equal height, and along μ for three σ",
    ),
    takes=("a second", "a second"),
    show=show,
)
