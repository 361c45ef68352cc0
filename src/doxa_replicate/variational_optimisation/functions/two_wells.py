"""A wide well beside a deeper narrow one: which of them a search prefers depends on how widely it looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa.search import Search, Settings, natural, shaping
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.show import Chart, ChartLine, Contours, PageElement, ResultTable

WIDE_WELL, NARROW_WELL = (-1.0, 1.0, 0.7), (1.5, 0.15, 1.0)  # where, how wide, how deep
START, POPULATION = 1.0, 50
START_SCALES = (0.1, 0.2, 0.4, 0.8, 1.6)  # σ at the start of searches
MEAN_RATE, SCALE_RATE = 0.5, 0.2
LEVELS = (-1.05, -0.9, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1, 0.0)
PREFERS_WIDE = Claim(
    "C-VO-5",
    "The expected value is lowest in the wide well, once the search looks widely enough",
    "there is a σ from which on the μ with the lowest U lies in the wide well, within one of its widths, and below "
    "which it lies in the narrow one",
)


def wells(w: Tensor) -> Tensor:
    """f(w) = −Σ depth exp(−(w − where)²/2 width²) for w [..., 1]."""
    return expected(w[..., 0], torch.zeros(1, dtype=w.dtype))


def expected(mean: Tensor, scale: Tensor) -> Tensor:
    """U(μ, σ) = −Σ depth · width/√(width² + σ²) exp(−(μ − where)²/2(width² + σ²)): Gaussians meet in a Gaussian."""
    value = torch.zeros_like(mean)
    for middle, width, depth in (WIDE_WELL, NARROW_WELL):
        square = width**2 + scale.square()
        value = value - depth * width * square.rsqrt() * torch.exp(-(mean - middle).square() / (2 * square))
    return value


def inside_well(w: Any, well: tuple[float, float, float]) -> Any:
    """Whether points lie within one width of a well's middle."""
    return abs(w - well[0]) <= well[1]


def run(options: ReplicationOptions) -> Numbers:
    seeds = options.seed_list(2, 10)
    mean = torch.linspace(-4, 4, int(options.by_size(401, 8001)), dtype=torch.float64)
    scale = torch.logspace(-2, 0.5, int(options.by_size(26, 251)), dtype=torch.float64)
    best_means = torch.stack([mean[expected(mean, s).argmin()] for s in scale])
    in_wide_well = inside_well(best_means, WIDE_WELL)
    first_wide = int(in_wide_well.int().argmax()) if bool(in_wide_well.any()) else len(scale)
    wells_parted = (
        bool(in_wide_well[first_wide:].all())
        and first_wide < len(scale)
        and bool(inside_well(best_means[:first_wide], NARROW_WELL).all())
    )
    threshold = float(scale[first_wide]) if first_wide < len(scale) else None
    thin_mean, thin_scale = torch.linspace(-4, 4, 81, dtype=torch.float64), torch.logspace(-2, 0.5, 31).double()
    settings = {
        "seeds": seeds,
        "first": START_SCALES,
        "start": START,
        "steps": options.by_size(100, 300),
        "rates": (MEAN_RATE, SCALE_RATE),
    }
    searches = cached_part(options, "two-wells", settings, partial(search_ends, seeds, int(options.by_size(100, 300))))
    fine_grid = torch.linspace(-4, 4, 321, dtype=torch.float64)
    return {
        "settings": {"wide": WIDE_WELL, "narrow": NARROW_WELL, "population": POPULATION} | settings,
        "seeds": seeds,
        "f": {"x": fine_grid.tolist(), "y": wells(fine_grid[:, None]).tolist()},
        "surface": {
            "mean": thin_mean.tolist(),
            "scale": thin_scale.tolist(),
            "height": torch.stack([expected(thin_mean, s) for s in thin_scale]).tolist(),
        },
        "best": {
            "scale": scale[:: int(options.by_size(1, 5))].tolist(),
            "mean": best_means[:: int(options.by_size(1, 5))].tolist(),
        },
        "threshold": threshold,
        "searches": searches,
        "verdicts": [
            PREFERS_WIDE.judge(
                wells_parted,
                {"σ from which on it is the wide well": threshold, "the narrow well's width": NARROW_WELL[1]},
                None,
                (),
                f"{len(mean):,} μ and {len(scale)} σ from 0.01 to 3.2; the integral is exact",
            )
        ],
    }


@torch.no_grad()
def search_ends(seeds: Sequence[int], steps: int) -> dict[str, list[float]]:
    """Where natural searches end by the σ they start with, from between the wells, nearer to the narrow one."""
    ends_by_scale = {}
    for start_scale in START_SCALES:
        search_settings = Settings(
            scale=start_scale,
            size=POPULATION,
            antithetic=False,
            gradient=natural,
            shaping=shaping.raw,
            lr=MEAN_RATE,
            scale_lr=SCALE_RATE,
        )
        ends = []
        for seed in seeds:
            search = Search([START], search_settings, seed)
            for _ in range(steps):
                search.tell(wells(search.ask()))
            ends.append(float(search.mean))
        ends_by_scale[f"{start_scale:g}"] = ends
    return ends_by_scale


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    surface, best = numbers["surface"], numbers["best"]
    rows = [
        [
            start_scale,
            *(str(sum(inside_well(w, well) for w in ends)) for well in (WIDE_WELL, NARROW_WELL)),
            str(len(ends)),
        ]
        for start_scale, ends in numbers["searches"].items()
    ]
    threshold = numbers["threshold"]
    caption = f"From σ = {threshold:.3g} on, the lowest U along μ lies in the wide well." if threshold else ""
    return [
        Chart(
            "Two wells",
            f"The wide one is {WIDE_WELL[2]:g} deep, the narrow one {NARROW_WELL[2]:g}.",
            "w",
            "f",
            [ChartLine("f", numbers["f"]["x"], numbers["f"]["y"])],
        ),
        Chart(
            "U(μ, σ)",
            f"The more ink, the higher. {caption}",
            "μ",
            "σ",
            [ChartLine("lowest U along μ", best["mean"], best["scale"])],
            contours=Contours("U", surface["mean"], surface["scale"], surface["height"], LEVELS),
            log_y=True,
        ),
        ResultTable(
            f"Where natural searches end that start at μ = {START:g}",
            ("σ at the start", "in the wide well", "in the narrow one", "of"),
            rows,
            caption="Both settle; the wider the first look, the more often in the wide well.",
        ),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/two-wells",
    order=5,
    group="functions",
    title="A wide local minimum beside a narrow global one",
    requirements=("VO-14",),
    run=run,
    claims=(PREFERS_WIDE,),
    reference={"document": "the search prefers the wide minimum where both are near; no numbers are printed"},
    left_open=(
        "the function: two Gaussian wells, one unit and 0.15 wide, 0.7 and 1 deep, 2.5 apart",
        "how searches are run: natural gradients, N = 50 independent draws, rates 0.5 and 0.2, from between the wells",
    ),
    durations=("a second", "half a minute"),
    show=show,
)
