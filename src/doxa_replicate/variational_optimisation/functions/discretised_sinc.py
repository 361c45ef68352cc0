"""A function without slopes, and the smooth one above it that a Gaussian makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, Contours, PageElement

CELL_WIDTH, MEAN_REACH = 0.5, 10.0
SMALLEST_SCALE, LARGEST_SCALE = 0.02, 3.0
CURVE_SCALES = (0.2, 0.6, 1.5)  # σ of the curves that are drawn
NARROW_SCALE = 0.1  # a σ so small that U is nearly f
REACH_IN_SCALES = 9.0  # standard deviations, beyond which a Gaussian has no mass that counts
LEVELS = (-0.25, -0.2, -0.15, -0.1, -0.05, 0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01)
ROUNDING = 1e-12
NEVER_BELOW = Claim(
    "C-VO-4",
    "The expected value is never below the lowest value",
    f"U(μ, σ) ≥ min f at every point of the grid, to within {ROUNDING:g}",
)


def cell_values() -> tuple[Tensor, Tensor]:
    """Where sin w / w is held, and its value there: the middles of cells from −∞ to ∞, as far as they count."""
    cells_each_side = int((MEAN_REACH + REACH_IN_SCALES * LARGEST_SCALE) / CELL_WIDTH) + 1
    middles = CELL_WIDTH * torch.arange(-cells_each_side, cells_each_side + 1, dtype=torch.float64)
    return middles, torch.sinc(middles / torch.pi)


def staircase(w: Tensor) -> Tensor:
    """The sinc function, held over cells that are a step wide."""
    return torch.sinc(CELL_WIDTH * torch.round(w / CELL_WIDTH) / torch.pi)


def expected(mean: Tensor, scale: Tensor) -> Tensor:
    """U(μ, σ) = Σ_k f_k P(w in cell k): the integral itself, for f is constant in each cell."""
    middles, values = cell_values()
    edges = torch.cat([middles - CELL_WIDTH / 2, middles[-1:] + CELL_WIDTH / 2])
    below = torch.special.ndtr((edges - mean[..., None]) / scale[..., None])
    return (below.diff(dim=-1) * values).sum(-1)


def run(options: ReplicationOptions) -> Numbers:
    mean_count, scale_count = options.by_size((41, 11), (121, 31))
    mean = torch.linspace(-MEAN_REACH, MEAN_REACH, mean_count, dtype=torch.float64)
    scale = torch.logspace(math.log10(SMALLEST_SCALE), math.log10(LARGEST_SCALE), scale_count, dtype=torch.float64)
    surface = torch.stack([expected(mean, s.expand_as(mean)) for s in scale])
    lowest = float(cell_values()[1].min())
    margin = float(surface.min()) - lowest
    fine_grid = torch.linspace(-MEAN_REACH, MEAN_REACH, 401, dtype=torch.float64)
    middles = cell_values()[0]
    inner_middles = middles[middles.abs() <= MEAN_REACH]
    narrow_values = expected(inner_middles, torch.full_like(inner_middles, NARROW_SCALE))
    return {
        "settings": {"step": CELL_WIDTH, "means": mean_count, "scales": scale_count},
        "f": {"x": fine_grid.tolist(), "y": staircase(fine_grid).tolist()},
        "curves": {f"{s:g}": expected(fine_grid, torch.full_like(fine_grid, s)).tolist() for s in CURVE_SCALES},
        "surface": {"mean": mean.tolist(), "scale": scale.tolist(), "height": surface.tolist()},
        "lowest": lowest,
        "narrow": float((narrow_values - staircase(inner_middles)).abs().max()),
        "verdicts": [
            NEVER_BELOW.judge(
                margin >= -ROUNDING,
                {"lowest U − min f": margin, "min f": lowest},
                None,
                (),
                f"{mean_count} × {scale_count} points of μ and σ, σ from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}; the "
                "integral is exact",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    x, surface = numbers["f"]["x"], numbers["surface"]
    curves = [ChartLine(f"U, σ = {s}", x, y) for s, y in numbers["curves"].items()]
    return [
        Chart(
            "The discretised sinc, and U along μ",
            f"No slope leads anywhere on the steps; U has one everywhere. Lowest f: −{-numbers['lowest']:.3f}.",
            "w, μ",
            "f, U",
            [ChartLine("f", x, numbers["f"]["y"], dashed=True), *curves],
        ),
        Chart(
            "U(μ, σ)",
            f"The more ink, the higher. In the middle of every step U is within {numbers['narrow']:.2g} of f at "
            f"σ = {NARROW_SCALE:g}.",
            "μ",
            "σ",
            contours=Contours("U", surface["mean"], surface["scale"], surface["height"], LEVELS),
            log_y=True,
        ),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/discretised-sinc",
    order=4,
    group="functions",
    title="A function of steps, and its expected value under a Gaussian",
    requirements=("VO-07", "VO-13"),
    run=run,
    claims=(NEVER_BELOW,),
    reference={
        "document": "U is differentiable where the function is not, and tends to it as σ → 0; no numbers are printed"
    },
    left_open=(
        "how the function is made discrete: sin w / w, held over cells half a unit wide",
        "how U is drawn: by lines of equal height, and along μ for three σ",
    ),
    durations=("a second", "a second"),
    show=show,
)
