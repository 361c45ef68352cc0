"""A function without slopes, and the smooth one above it that a Gaussian makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.show import Chart, ChartLine, Contours, PageElement
from doxa_replicate.variational_optimisation.functions import drawn
from doxa_replicate.verdicts import Evidence

CELL_WIDTH, MEAN_REACH = 0.5, 10.0
SMALLEST_SCALE, LARGEST_SCALE = 0.02, 3.0
FINE_POINTS = 401
CURVE_SCALES = (0.2, 0.6, 1.5)  # σ of the curves that are drawn
NARROW_SCALE = 0.1  # a σ so small that U is nearly f
REACH_IN_SCALES = 9.0  # standard deviations, beyond which a Gaussian has no mass that counts
STEPS_PER_UNIT = 5  # of the author's function
LEVEL_COUNT = 17  # of the author's lines of equal height
LEVELS = (-0.25, -0.2, -0.15, -0.1, -0.05, 0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01)
ROUNDING = 1e-12
NEVER_BELOW = Claim(
    "C-VO-4",
    "The expected value is never below the lowest value",
    f"the lowest U(μ, σ) of the grid less min f, above −{ROUNDING:g}: as run over lots of draws, as written exactly",
)


def drawn_staircase(w: Tensor) -> Tensor:
    """⌊−5 sinc(w)⌋/5, as the document's author drew it: sinc(w) = sin πw / πw."""
    return torch.floor(-STEPS_PER_UNIT * torch.sinc(w)) / STEPS_PER_UNIT


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
    lots, written = drawn.seeds(options), _column_as_written(options)
    as_run = cached_part(
        options,
        "discretised-sinc",
        {"lots": lots, "draws": drawn.draw_count(options), "grid": len(drawn.grid(options)[0])},
        partial(_column_as_run, options),
    )
    margins = Evidence(as_run["margins"], above=-ROUNDING)
    return {
        "settings": {
            AS_RUN: {"steps a unit": STEPS_PER_UNIT, "draws": drawn.draw_count(options)},
            AS_WRITTEN: {"step": CELL_WIDTH},
        },
        "seeds": lots,
        "columns": {AS_RUN: as_run, AS_WRITTEN: written},
        "verdicts": [
            NEVER_BELOW.decide({"lowest U − min f": margins}, lots, AS_RUN, "μ within ±5, σ from 0 to 2"),
            NEVER_BELOW.judge(
                written["margin"] >= -ROUNDING,
                {"lowest U − min f": written["margin"], "min f": written["lowest"]},
                setting=f"σ from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}; the integral is exact",
                column=AS_WRITTEN,
            ),
        ],
    }


def _column_as_run(options: ReplicationOptions) -> dict[str, Any]:
    mean, scale = drawn.grid(options)
    surfaces = [
        drawn.drawn_surface(drawn_staircase, mean, scale, drawn.draw_count(options), seed)
        for seed in drawn.seeds(options)
    ]
    x = torch.linspace(-drawn.MEAN_REACH, drawn.MEAN_REACH, FINE_POINTS, dtype=torch.float64)
    curves = [
        drawn.drawn_surface(drawn_staircase, x, torch.tensor([s]), drawn.draw_count(options), 0)[0]
        for s in CURVE_SCALES
    ]
    lowest = float(drawn_staircase(torch.zeros(1, dtype=torch.float64)))
    return {
        "f": {"x": x.tolist(), "y": drawn_staircase(x).tolist()},
        "curves": {f"{s:g}": curve.tolist() for s, curve in zip(CURVE_SCALES, curves, strict=True)},
        "surface": drawn.thinned_surface(mean, scale, surfaces[0]),
        "lowest": lowest,
        "margins": [float(surface.min()) - lowest for surface in surfaces],
        "narrow": max(float((surface[0] - drawn_staircase(mean)).abs().max()) for surface in surfaces),
    }


def _column_as_written(options: ReplicationOptions) -> dict[str, Any]:
    mean_count, scale_count = options.by_size((41, 11), (121, 31))
    mean = torch.linspace(-MEAN_REACH, MEAN_REACH, mean_count, dtype=torch.float64)
    scale = torch.logspace(math.log10(SMALLEST_SCALE), math.log10(LARGEST_SCALE), scale_count, dtype=torch.float64)
    surface = torch.stack([expected(mean, s.expand_as(mean)) for s in scale])
    lowest = float(cell_values()[1].min())
    fine_grid = torch.linspace(-MEAN_REACH, MEAN_REACH, FINE_POINTS, dtype=torch.float64)
    middles = cell_values()[0]
    inner_middles = middles[middles.abs() <= MEAN_REACH]
    narrow_values = expected(inner_middles, torch.full_like(inner_middles, NARROW_SCALE))
    return {
        "f": {"x": fine_grid.tolist(), "y": staircase(fine_grid).tolist()},
        "curves": {f"{s:g}": expected(fine_grid, torch.full_like(fine_grid, s)).tolist() for s in CURVE_SCALES},
        "surface": {"mean": mean.tolist(), "scale": scale.tolist(), "height": surface.tolist()},
        "lowest": lowest,
        "margin": float(surface.min()) - lowest,
        "narrow": float((narrow_values - staircase(inner_middles)).abs().max()),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [chart for column, numbers in columns(result).items() for chart in _charts(numbers, column)]


def _charts(numbers: Mapping[str, Any], column: str) -> list[PageElement]:
    x, surface = numbers["f"]["x"], numbers["surface"]
    curves = [ChartLine(f"U, σ = {s}", x, y) for s, y in numbers["curves"].items()]
    drawn_alike = column == AS_RUN
    nearness = (
        "At σ = 0, U is f."
        if drawn_alike
        else f"In the middle of every step U is within {numbers['narrow']:.2g} of f at σ = {NARROW_SCALE:g}."
    )
    levels = drawn.even_levels(numbers["lowest"], 1 / STEPS_PER_UNIT, LEVEL_COUNT) if drawn_alike else LEVELS
    return [
        Chart(
            f"The discretised sinc, and U along μ, {column}",
            f"No slope leads anywhere on the steps; U has one everywhere. Lowest f: −{-numbers['lowest']:.3f}.",
            "w, μ",
            "f, U",
            [ChartLine("f", x, numbers["f"]["y"], dashed=True), *curves],
        ),
        Chart(
            f"U(μ, σ), {column}",
            f"The more ink, the higher. {nearness}",
            "μ",
            "σ",
            contours=Contours("U", surface["mean"], surface["scale"], surface["height"], levels),
            log_y=not drawn_alike,
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
        "document": "U is differentiable where the function is not, and tends to it as σ → 0; no numbers are printed",
        "note": "as run ⌊−5 sinc(w)⌋/5 with sinc(w) = sin πw/πw, and U the mean of 15,000 draws, the same for all "
        "200 × 200 points; ten such lots here",
    },
    left_open=(
        "as written, how the function is made discrete: sin w / w, held over cells half a unit wide",
        "as written, how U is drawn: by lines of equal height, and along μ for three σ",
    ),
    durations=("a second", "two minutes"),
    show=show,
)
