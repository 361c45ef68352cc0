"""How uncertain a smoothed gradient is: without bound as the scale falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.show import Chart, Line, Shown, Table
from doxa_replicate.variational_optimisation.functions.estimates import AT, gaussian, section, slope_at, slopes, varied

SCALES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
SMALL = 0.1  # up to which σ is small: the function is nearly straight so near
POPULATION = 50
SLOPE, ROOM, WITHIN = -2.0, 0.1, 0.05
EXPLODES = Claim(
    "C-VO-2",
    "The variance of a smoothed gradient grows as 1/σ² where σ falls",
    f"over σ up to {SMALL:g}: slope of log variance against log σ {SLOPE:g} ± {ROOM:g}, and the variance within "
    f"{100 * WITHIN:g} % of f²/Nσ² + 2f′²/N at each",
)


def law(scale: float) -> float:
    """f²/(Nσ²) + 2 f′²/N, of a function that is straight."""
    f = float(section(torch.tensor([AT], dtype=torch.float64)))
    return f**2 / (POPULATION * scale**2) + 2 * slope_at(AT) ** 2 / POPULATION


def run(ask: Ask) -> Numbers:
    repeats = int(ask.of(2_000, 100_000))
    at = torch.tensor([AT], dtype=torch.float64)
    found = [
        varied(slopes(section, gaussian(at, scale), POPULATION, False, repeats, seed))[0]
        for seed, scale in enumerate(SCALES)  # a seed for each scale, so that no two share their noise
    ]
    ratios = [one.value / law(scale) for one, scale in zip(found, SCALES, strict=True)]
    small = [k for k, scale in enumerate(SCALES) if scale <= SMALL]
    slope = float(np.polyfit(np.log([SCALES[k] for k in small]), np.log([found[k].value for k in small]), 1)[0])
    off = max(abs(ratios[k] - 1) for k in small)
    return {
        "settings": {"population": POPULATION, "estimates": repeats, "at": AT, "scales": SCALES},
        "seeds": list(range(len(SCALES))),
        "variance": [one.value for one in found],
        "error": [one.error for one in found],
        "law": [law(scale) for scale in SCALES],
        "slope": slope,
        "verdicts": [
            EXPLODES.judged(
                abs(slope - SLOPE) <= ROOM and off <= WITHIN,
                {"slope": slope, "largest distance from the law": off},
                max(found[k].error / found[k].value for k in small),
                list(range(len(SCALES))),
                "Himmelblau's function along y = 2, at x = 1; the error is that of a variance, as a share of it",
            )
        ],
    }


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    lines = [
        Line("measured", SCALES, numbers["variance"]),
        Line("f²/Nσ² + 2f′²/N", SCALES, numbers["law"], dashed=True),
    ]
    rows = [
        [f"{scale:g}", f"{v:.4g}", f"{e:.2g}", f"{w:.4g}", f"{v / w:.3f}"]
        for scale, v, e, w in zip(SCALES, numbers["variance"], numbers["error"], numbers["law"], strict=True)
    ]
    return [
        Chart(
            "Variance of ∂U/∂μ against σ",
            f"Slope on these axes, up to σ = {SMALL:g}: −{-numbers['slope']:.3f}. The law takes f as straight.",
            "σ",
            "variance",
            lines,
            log_x=True,
            log_y=True,
        ),
        Table("Measured, and by the law", ("σ", "measured", "± of it", "law", "ratio"), rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/gradient-variance",
    place=3,
    group="functions",
    title="The variance of a smoothed gradient as its scale falls",
    rows=("VO-05",),
    run=run,
    claims=(EXPLODES,),
    reference={"document": "Var ≈ f²/Nσ² + 2f′²/N in one dimension: it explodes as σ → 0; nothing is measured"},
    left_open=("the function and the point: Himmelblau's along y = 2 at x = 1, where f = 68 and f′ = −36; N = 50",),
    takes=("a second", "some seconds"),
    show=show,
)
