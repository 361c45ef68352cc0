"""Figure 3: a Gaussian, a scale mixture and a Laplace prior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from doxa.contracts import Prior
from doxa.priors import gaussian, laplace, scale_mixture
from doxa.report.numbers import format_with_error
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable

PRIORS: dict[str, Prior] = {
    "Gaussian": gaussian(1.0),
    "scale mixture": scale_mixture(0.5, 1.0, math.exp(-7)),
    "Laplace": laplace(0.15),
}
NEAR, TAIL, FAR = (0.05, 0.15), 2.0, 60.0


def mass_between(prior: Prior, low: float, high: float) -> float:
    """The probability that |w| lies between, by the trapezoidal rule, as fine near zero as the narrow Gaussian asks."""
    grid = torch.logspace(-9, math.log10(high), 200_001, dtype=torch.float64)
    w = torch.cat([torch.full((1,), low, dtype=torch.float64), grid[grid > low]])
    return 2 * float(torch.trapezoid(prior.log_prob(w).exp(), w))


def run(options: ReplicationOptions) -> Numbers:
    w = torch.linspace(-3, 3, options.by_size(101, 601), dtype=torch.float64)
    curves = {}
    for name, prior in PRIORS.items():
        within = {f"{d:g}": mass_between(prior, 0.0, d) for d in NEAR}
        curves[name] = {"density": prior.log_prob(w).exp(), "within": within, "beyond": mass_between(prior, TAIL, FAR)}
    return {"settings": {"near": NEAR, "tail": TAIL}, "w": w, "curves": curves}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    curves = result["numbers"]["curves"]
    lines = [ChartLine(name, result["numbers"]["w"], curve["density"]) for name, curve in curves.items()]
    near = [f"{d:g}" for d in NEAR]
    rows = [
        [name, *(f"{curve['within'][d]:.2f}" for d in near), format_with_error(curve["beyond"])]
        for name, curve in curves.items()
    ]
    headers = ("prior", *(f"P(|w| < {d})" for d in near), f"P(|w| > {TAIL:g})")
    caption = "The mixture has the most mass at zero, and as thick a foot as half a standard Gaussian."
    return [
        Chart("Densities", caption, "weight", "density", lines, y_limits=(0, 4)),
        ResultTable("Mass near zero and in the tails", headers, rows),
    ]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-3",
    order=3,
    title="Three priors: the mixture has more mass at zero than Laplace, and more in the tails",
    requirements=("WU-14",),
    run=run,
    reference={
        "document": "Laplace is said to have more mass around zero than the mixture, and less in the tails",
        "P(|w| < d), by d": {
            "0.05": {"Laplace": 0.28, "scale mixture": 0.52},
            "0.15": {"Laplace": 0.63, "scale mixture": 0.56},
        },
        "note": "the document prints no numbers: probabilities worked out for the scales it trains with",
    },
    left_open=("which scales were drawn: those of its MNIST runs were taken, N(0, 1), (0, 7) at a half, b = 0.15",),
    durations=("a second", "a second"),
    show=show,
    group="priors",
)
