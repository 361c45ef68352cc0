"""Figure 2: densities of the scale mixture prior, and the smoothed ones that were drawn for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from doxa.priors import scale_mixture
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import Evidence
from doxa_replicate.weight_uncertainty.kernel_estimate import DRAWS, REACH, KernelEstimate, estimate, seeds_of
from doxa_replicate.weight_uncertainty.smoothing import judge_both, judged_table

WIDE, NARROW, SHARE = (0, 1, 2), (6, 7, 8), 0.5  # −log of both scales, and the share of the wide one
PRINTED = {"0": (3.01, 3.03, 2.99), "1": (8.17, 8.25, 8.18), "2": (21.72, 22.09, 22.19)}  # by −log σ₁, then −log σ₂
SUBTLE = 0.1  # a peak that grows by less than this share hardly changes


def run(options: ReplicationOptions) -> Numbers:
    seeds = seeds_of(options)
    priors = {
        f"{wide}, {narrow}": scale_mixture(SHARE, math.exp(-wide), math.exp(-narrow))
        for wide in WIDE
        for narrow in NARROW
    }
    exact_grid = torch.linspace(-0.02, 0.02, options.by_size(101, 401), dtype=torch.float64)
    drawn_grid = torch.linspace(-REACH, REACH, options.by_size(101, 401), dtype=torch.float64)
    estimates = {name: [estimate(prior, seed, options) for seed in seeds] for name, prior in priors.items()}
    smoothed = {name: _smoothed_curve(each, drawn_grid) for name, each in estimates.items()}
    exact = {
        name: {
            "density": prior.log_prob(exact_grid).exp(),
            "peak": float(prior.log_prob(torch.zeros(1, dtype=torch.float64)).exp()),
        }
        for name, prior in priors.items()
    }
    return {
        "settings": {
            "wide": WIDE,
            "narrow": NARROW,
            "share": SHARE,
            "draws": options.by_size(2000, DRAWS),
            "bandwidth": "standard deviation of the draws × their number^(−1/5)",
        },
        "seeds": seeds,
        "columns": {
            AS_RUN: {"w": drawn_grid, "curves": smoothed},
            AS_WRITTEN: {"w": exact_grid, "curves": exact},
        },
        "growth_of_the_peak": {str(wide): _judge_growth(wide, smoothed, exact) for wide in WIDE},
    }


def _smoothed_curve(estimates: Sequence[KernelEstimate], grid: torch.Tensor) -> dict[str, Any]:
    """The first sample's curve, and the peak and the width of the kernel of each."""
    return {
        "density": estimates[0].density(grid),
        "peaks": [each.peak() for each in estimates],
        "bandwidth": estimates[0].bandwidth,
    }


def _judge_growth(wide: int, smoothed: Mapping[str, Any], exact: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the peak hardly changes from one narrow scale to another, sample by sample of the draws."""
    names = [f"{wide}, {narrow}" for narrow in NARROW]
    by_sample = zip(*(smoothed[name]["peaks"] for name in names), strict=True)
    return judge_both(
        Evidence([growth(peaks) for peaks in by_sample], below=SUBTLE), growth([exact[name]["peak"] for name in names])
    )


def growth(peaks: Sequence[float]) -> float:
    """By which share the largest of some peaks exceeds the smallest."""
    return max(peaks) / min(peaks) - 1


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    by_column = columns(result)
    exact = by_column[AS_WRITTEN]
    peaks = [
        [str(wide), *(f"{exact['curves'][f'{wide}, {narrow}']['peak']:.2f}" for narrow in NARROW)] for wide in WIDE
    ]
    caption = "The narrow Gaussian alone decides the peak; the wide one is the foot, too low to be seen beside it."
    log_caption = "On a logarithmic axis the feet are seen: each is half the wide Gaussian, whatever the narrow one is."
    elements: list[PageElement] = [
        Chart("Densities", caption, "weight", "density", _lines(exact)),
        Chart("The same, down to the feet", log_caption, "weight", "density", _lines(exact), log_y=True),
        ResultTable("Height of the peak", _HEADERS, peaks),
    ]
    if AS_RUN not in by_column:
        return elements
    return [*_show_as_run(by_column[AS_RUN], result["numbers"]["growth_of_the_peak"]), *elements]


_HEADERS = ("−log σ₁", *(f"−log σ₂ = {narrow}" for narrow in NARROW))


def _show_as_run(column: Mapping[str, Any], changes: Mapping[str, Any]) -> list[PageElement]:
    curves = column["curves"]
    peaks = [
        [f"{wide}, {who}", *cells]
        for wide in WIDE
        for who, cells in (
            ("document", [f"{peak:.2f}" for peak in PRINTED[str(wide)]]),
            ("here", [_spread(curves[f"{wide}, {narrow}"]["peaks"]) for narrow in NARROW]),
        )
    ]
    widths = ", ".join(f"{curves[f'{wide}, {NARROW[0]}']['bandwidth']:.2g}" for wide in WIDE)
    caption = (
        f"A Gaussian about each draw, of scale {widths} for −log σ₁ of 0, 1, 2: wider than the narrow Gaussians "
        "themselves, whose scales are 0.0025, 0.0009 and 0.0003. Curves of one σ₁ lie upon one another."
    )
    # Here it is the wide scale that tells curves apart, so it has the colours.
    lines = [
        replace(line, like=None if narrow == NARROW[0] else _line_name(wide, NARROW[0]))
        for line, (narrow, wide) in zip(_lines(column), itertools.product(NARROW, WIDE), strict=True)
    ]
    peaks_caption = "Smallest to largest of our samples of draws; the document's is one sample."
    return [
        Chart("As drawn: kernel estimates", caption, "weight", "density", lines, y_limits=(0, 25)),
        ResultTable("Height of the smoothed peak", _HEADERS, peaks, caption=peaks_caption),
        judged_table(
            {
                f"−log σ₁ = {wide}: the peak grows by a share of less than {SUBTLE:g} from one σ₂ to another": each
                for wide, each in changes.items()
            },
            places=3,
        ),
    ]


def _spread(peaks: Sequence[float]) -> str:
    return f"{min(peaks):.2f} to {max(peaks):.2f}"


def _lines(column: Mapping[str, Any]) -> list[ChartLine]:
    return [
        ChartLine(
            _line_name(wide, narrow),
            column["w"],
            column["curves"][f"{wide}, {narrow}"]["density"],
            like=None if wide == WIDE[0] else _line_name(WIDE[0], narrow),
        )
        for narrow in NARROW
        for wide in WIDE
    ]


def _line_name(wide: int, narrow: int) -> str:
    return f"−log σ₁ = {wide}, −log σ₂ = {narrow}"


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-2",
    order=2,
    title="Scale mixtures of two Gaussians: the narrow one nearly alone decides the peak, which smoothing hides",
    requirements=("WU-13",),
    run=run,
    reference={
        "peak of the exact density, by −log σ₁ (down) and −log σ₂ (across)": {
            "0": {"6": 80.67, "7": 218.95, "8": 594.81},
            "1": {"6": 81.01, "7": 219.29, "8": 595.16},
            "2": {"6": 81.95, "7": 220.22, "8": 596.09},
        },
        "peak as printed": {
            wide: dict(zip(map(str, NARROW), printed, strict=True)) for wide, printed in PRINTED.items()
        },
        "note": "the printed peaks are those of kernel estimates of 100,000 draws, and the impact of σ₂ is called "
        "subtle; those of the density are worked out from its settings, (0.5/wide + 0.5/narrow)/√(2π)",
    },
    durations=("a second", "half a minute"),
    show=show,
    group="priors",
)
