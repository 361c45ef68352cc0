"""How uncertain a smoothed gradient is: without bound as the scale falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.functions.estimates import (
    SECTION_POINT,
    column_variances,
    gradient_estimates,
    isotropic_gaussian,
    section,
    section_slope,
)

SCALES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
SMALL_SCALE = 0.1  # up to which σ is small: the function is nearly straight so near
POPULATION = 50
EXPECTED_SLOPE, SLOPE_TOLERANCE, TOLERANCE = -2.0, 0.1, 0.05
EXPLODES = Claim(
    "C-VO-2",
    "The variance of a smoothed gradient grows as 1/σ² where σ falls",
    f"over σ up to {SMALL_SCALE:g}: slope of log variance against log σ {EXPECTED_SLOPE:g} ± {SLOPE_TOLERANCE:g}, and "
    "the variance within "
    f"{100 * TOLERANCE:g} % of f²/Nσ² + 2f′²/N at each",
)


def variance_law(scale: float) -> float:
    """f²/(Nσ²) + 2 f′²/N, of a function that is straight."""
    f = float(section(torch.tensor([SECTION_POINT], dtype=torch.float64)))
    return f**2 / (POPULATION * scale**2) + 2 * section_slope(SECTION_POINT) ** 2 / POPULATION


def run(options: ReplicationOptions) -> Numbers:
    repeats = int(options.by_size(2_000, 100_000))
    point = torch.tensor([SECTION_POINT], dtype=torch.float64)
    measurements = [
        column_variances(
            gradient_estimates(section, isotropic_gaussian(point, scale), POPULATION, False, repeats, seed)
        )[0]
        for seed, scale in enumerate(SCALES)  # a seed for each scale, so that no two share their noise
    ]
    ratios = [measurement.value / variance_law(scale) for measurement, scale in zip(measurements, SCALES, strict=True)]
    small_indices = [k for k, scale in enumerate(SCALES) if scale <= SMALL_SCALE]
    slope = float(
        np.polyfit(
            np.log([SCALES[k] for k in small_indices]), np.log([measurements[k].value for k in small_indices]), 1
        )[0]
    )
    largest_error = max(abs(ratios[k] - 1) for k in small_indices)
    return {
        "settings": {"population": POPULATION, "estimates": repeats, "at": SECTION_POINT, "scales": SCALES},
        "seeds": list(range(len(SCALES))),
        "variance": [measurement.value for measurement in measurements],
        "error": [measurement.error for measurement in measurements],
        "law": [variance_law(scale) for scale in SCALES],
        "slope": slope,
        "verdicts": [
            EXPLODES.judge(
                abs(slope - EXPECTED_SLOPE) <= SLOPE_TOLERANCE and largest_error <= TOLERANCE,
                {"slope": slope, "largest distance from the law": largest_error},
                max(measurements[k].error / measurements[k].value for k in small_indices),
                list(range(len(SCALES))),
                "Himmelblau's function along y = 2, at x = 1; the error is that of a variance, as a share of it",
            )
        ],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    lines = [
        ChartLine("measured", SCALES, numbers["variance"]),
        ChartLine("f²/Nσ² + 2f′²/N", SCALES, numbers["law"], dashed=True),
    ]
    rows = [
        [f"{scale:g}", f"{v:.4g}", f"{e:.2g}", f"{w:.4g}", f"{v / w:.3f}"]
        for scale, v, e, w in zip(SCALES, numbers["variance"], numbers["error"], numbers["law"], strict=True)
    ]
    return [
        Chart(
            "Variance of ∂U/∂μ against σ",
            f"Slope on these axes, up to σ = {SMALL_SCALE:g}: −{-numbers['slope']:.3f}. The law takes f as straight.",
            "σ",
            "variance",
            lines,
            log_x=True,
            log_y=True,
        ),
        ResultTable("Measured, and by the law", ("σ", "measured", "± of it", "law", "ratio"), rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/gradient-variance",
    order=3,
    group="functions",
    title="The variance of a smoothed gradient as its scale falls",
    requirements=("VO-05",),
    run=run,
    claims=(EXPLODES,),
    reference={"document": "Var ≈ f²/Nσ² + 2f′²/N in one dimension: it explodes as σ → 0; nothing is measured"},
    left_open=("the function and the point: Himmelblau's along y = 2 at x = 1, where f = 68 and f′ = −36; N = 50",),
    durations=("a second", "some seconds"),
    show=show,
)
