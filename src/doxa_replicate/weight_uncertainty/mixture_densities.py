"""Figure 2: densities of the scale mixture prior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from doxa.priors import scale_mixture
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable

WIDE, NARROW, SHARE = (0, 1, 2), (6, 7, 8), 0.5  # −log of both scales, and the share of the wide one


def run(options: ReplicationOptions) -> Numbers:
    w = torch.linspace(-0.02, 0.02, options.by_size(101, 401), dtype=torch.float64)
    curves = {}
    for wide in WIDE:
        for narrow in NARROW:
            prior = scale_mixture(SHARE, math.exp(-wide), math.exp(-narrow))
            density = prior.log_prob(w).exp()
            curves[f"{wide}, {narrow}"] = {
                "density": density,
                "peak": float(prior.log_prob(torch.zeros(1, dtype=torch.float64)).exp()),
            }
    return {"settings": {"wide": WIDE, "narrow": NARROW, "share": SHARE}, "w": w, "curves": curves}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    lines = [
        ChartLine(
            _line_name(wide, narrow),
            numbers["w"],
            numbers["curves"][f"{wide}, {narrow}"]["density"],
            like=None if wide == WIDE[0] else _line_name(WIDE[0], narrow),
        )
        for narrow in NARROW
        for wide in WIDE
    ]
    peaks = [
        [str(wide), *(f"{numbers['curves'][f'{wide}, {narrow}']['peak']:.2f}" for narrow in NARROW)] for wide in WIDE
    ]
    caption = "The narrow Gaussian alone decides the peak; the wide one is the foot, too low to be seen beside it."
    log_caption = "On a logarithmic axis the feet are seen: each is half the wide Gaussian, whatever the narrow one is."
    return [
        Chart("Densities", caption, "weight", "density", lines),
        Chart("The same, down to the feet", log_caption, "weight", "density", lines, log_y=True),
        ResultTable("Height of the peak", ("−log σ₁", *(f"−log σ₂ = {narrow}" for narrow in NARROW)), peaks),
    ]


def _line_name(wide: int, narrow: int) -> str:
    return f"−log σ₁ = {wide}, −log σ₂ = {narrow}"


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-2",
    order=2,
    title="Scale mixtures of two Gaussians: the narrow one nearly alone decides how high the peak is",
    requirements=("WU-13",),
    run=run,
    reference={
        "peak by −log σ₁ (down) and −log σ₂ (across)": {
            "0": {"6": 80.67, "7": 218.95, "8": 594.81},
            "1": {"6": 81.01, "7": 219.29, "8": 595.16},
            "2": {"6": 81.95, "7": 220.22, "8": 596.09},
        },
        "note": "the document prints no numbers: peaks worked out from its settings, (0.5/wide + 0.5/narrow)/√(2π)",
    },
    durations=("a second", "a second"),
    show=show,
    group="priors",
)
