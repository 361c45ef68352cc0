"""Figure 3: a Gaussian, a scale mixture and a Laplace prior, and the smoothed curves that were drawn for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from doxa.contracts import Prior
from doxa.priors import gaussian, laplace, scale_mixture
from doxa.report.numbers import format_with_error
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import mean
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import paired
from doxa_replicate.weight_uncertainty.kernel_estimate import DRAWS, estimate, seeds_of
from doxa_replicate.weight_uncertainty.smoothing import MEANS, judge_both, judged_table

PRIORS: dict[str, Prior] = {
    "Gaussian": gaussian(1.0),
    "scale mixture": scale_mixture(0.5, 1.0, math.exp(-7)),
    "Laplace": laplace(0.15),
}
NEAR, TAIL, FAR = (0.05, 0.15), 2.0, 60.0
DISTANCES = torch.linspace(0, 0.4, 81, dtype=torch.float64)


def mass_between(prior: Prior, low: float, high: float) -> float:
    """The probability that |w| lies between, by the trapezoidal rule, as fine near zero as the narrow Gaussian asks."""
    if high <= low:
        return 0.0
    grid = torch.logspace(-9, math.log10(high), 200_001, dtype=torch.float64)
    w = torch.cat([torch.full((1,), low, dtype=torch.float64), grid[grid > low]])
    return 2 * float(torch.trapezoid(prior.log_prob(w).exp(), w))


def run(options: ReplicationOptions) -> Numbers:
    seeds = seeds_of(options)
    w = torch.linspace(-3, 3, options.by_size(101, 601), dtype=torch.float64)
    distances = DISTANCES[:: options.by_size(8, 1)]
    smoothed, exact = {}, {}
    for name, prior in PRIORS.items():
        samples = [estimate(prior, seed, options) for seed in seeds]
        smoothed[name] = {
            "density": samples[0].density(w),
            "within": {f"{d:g}": [each.within(d) for each in samples] for d in NEAR},
            "beyond": [1 - each.within(TAIL) for each in samples],
            "mass": [samples[0].within(float(d)) for d in distances],
        }
        exact[name] = {
            "density": prior.log_prob(w).exp(),
            "within": {f"{d:g}": mass_between(prior, 0.0, d) for d in NEAR},
            "beyond": mass_between(prior, TAIL, FAR),
            "mass": [mass_between(prior, 0.0, float(d)) for d in distances],
        }
    return {
        "settings": {"near": NEAR, "tail": TAIL, "draws": options.by_size(2000, DRAWS)},
        "seeds": seeds,
        "distances": distances,
        "columns": {AS_RUN: {"w": w, "curves": smoothed}, AS_WRITTEN: {"w": w, "curves": exact}},
        "judged": _judge(smoothed, exact),
    }


def _judge(smoothed: Mapping[str, Any], exact: Mapping[str, Any]) -> dict[str, Any]:
    """Laplace less the mixture: more of it near zero, and less of it far off."""
    (laplace_drawn, mixture_drawn), (laplace_exact, mixture_exact) = (
        (by_prior["Laplace"], by_prior["scale mixture"]) for by_prior in (smoothed, exact)
    )
    judged = {
        f"Laplace has more mass within {d} than the mixture": judge_both(
            paired(laplace_drawn["within"][d], mixture_drawn["within"][d], above=0.0),
            laplace_exact["within"][d] - mixture_exact["within"][d],
        )
        for d in laplace_exact["within"]
    }
    judged[f"Laplace has less mass beyond {TAIL:g}"] = judge_both(
        paired(laplace_drawn["beyond"], mixture_drawn["beyond"], below=0.0),
        laplace_exact["beyond"] - mixture_exact["beyond"],
    )
    return judged


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers, by_column = result["numbers"], columns(result)
    captions = {
        AS_RUN: "Smoothed, the mixture's peak comes down to that of Laplace, and its mass is spread about it.",
        AS_WRITTEN: "The mixture has the most mass at zero, and as thick a foot as half a standard Gaussian.",
    }
    charts = [
        Chart(
            f"Densities: {MEANS[name]}",
            captions[name],
            "weight",
            "density",
            [ChartLine(prior, column["w"], curve["density"]) for prior, curve in column["curves"].items()],
            y_limits=(0, 4),
        )
        for name, column in by_column.items()
    ]
    near = [f"{d:g}" for d in NEAR]
    rows = [
        [prior, MEANS[name], *(f"{_mean(curve['within'][d]):.2f}" for d in near), _tail(curve["beyond"])]
        for name, column in by_column.items()
        for prior, curve in column["curves"].items()
    ]
    headers = ("prior", "by", *(f"P(|w| < {d})" for d in near), f"P(|w| > {TAIL:g})")
    table = ResultTable("Mass near zero and in the tails", headers, rows, text_columns=2)
    if "judged" not in numbers:
        return [*charts, table]
    return [*charts, _mass_chart(numbers["distances"], by_column), table, judged_table(numbers["judged"], places=4)]


def _mean(value: Any) -> float:
    return mean(value) if isinstance(value, Sequence) else float(value)


def _tail(value: Any) -> str:
    return format_with_error(_mean(value))


def _mass_chart(distances: Sequence[float], by_column: Mapping[str, Any]) -> Chart:
    lines = [
        ChartLine(
            f"{prior}, {MEANS[name]}",
            distances,
            column["curves"][prior]["mass"],
            dashed=name == AS_RUN,
            like=None if name == AS_WRITTEN else f"{prior}, {MEANS[AS_WRITTEN]}",
        )
        for name, column in reversed([*by_column.items()])
        for prior in ("scale mixture", "Laplace")
    ]
    caption = "Half of the mixture lies within a few thousandths of zero; its kernel estimate spreads that half out."
    return Chart("Mass within a distance of zero", caption, "distance", "probability", lines, y_limits=(0, 1))


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
        "note": "the document prints no numbers: probabilities worked out for the scales it trains with; its curves "
        "are kernel estimates of 100,000 draws, of N(0, 1), of Laplace with b = 0.15 and of the mixture (1, e⁻⁷) at a "
        "half, which its legend calls (1, e⁻⁶)",
    },
    durations=("a second", "half a minute"),
    show=show,
    group="priors",
)
