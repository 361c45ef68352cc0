"""A wide well beside a deeper narrow one: which of them a search prefers depends on how widely it looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa.search import Search, Settings, natural, shaping
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.show import Chart, ChartLine, Contours, PageElement, ResultTable
from doxa_replicate.variational_optimisation.functions import drawn
from doxa_replicate.verdicts import Evidence

WIDE_WELL, NARROW_WELL = (-1.0, 1.0, 0.7), (1.5, 0.15, 1.0)  # where, how wide, how deep
START, POPULATION = 1.0, 50
START_SCALES = (0.1, 0.2, 0.4, 0.8, 1.6)  # σ at the start of searches
MEAN_RATE, SCALE_RATE = 0.5, 0.2
WIDE_STRETCH, NARROW_STRETCH = (-4.5, 0.5), (2.0, 2.5)  # where the author's parabolas are below 0
WIDE_CURVATURE, NARROW_CURVATURE = 0.2, 26.0
START_AS_RUN, LEVEL_COUNT = 2.0, 17
LEVELS = (-1.05, -0.9, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1, 0.0)
PREFERS_WIDE = Claim(
    "C-VO-5",
    "The expected value is lowest in the wide well, once the search looks widely enough",
    "there is a σ from which on the μ with the lowest U lies in the wide well, and below which it lies in the narrow "
    f"one: as run, over lots of draws, above 0 and below {drawn.LARGEST_SCALE:g}, the largest; as written exactly, "
    "within one width of a well",
)


def parabolas(w: Tensor) -> Tensor:
    """min(0, 0.2 (w + 4.5)(w − 0.5)) below ½ and min(0, 26 (w − 2)(w − 2.5)) from there on, as the author drew it."""
    wide = WIDE_CURVATURE * (w - WIDE_STRETCH[0]) * (w - WIDE_STRETCH[1])
    narrow = NARROW_CURVATURE * (w - NARROW_STRETCH[0]) * (w - NARROW_STRETCH[1])
    return torch.where(w < WIDE_STRETCH[1], wide, narrow).clamp_max(0)


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
    seeds, lots = options.seed_list(2, 10), drawn.seeds(options)
    as_run_settings = {
        "lots": lots,
        "draws": drawn.draw_count(options),
        "grid": len(drawn.grid(options)[0]),
        "searches": search_settings(options, START_AS_RUN),
    }
    as_run = cached_part(options, "two-wells-run", as_run_settings, partial(_column_as_run, options, seeds))
    written = _column_as_written(options, seeds)
    threshold = written["threshold"]
    setting = f"{written.pop('points')}; the integral is exact"
    return {
        "settings": {
            AS_RUN: as_run_settings,
            AS_WRITTEN: {"wide": WIDE_WELL, "narrow": NARROW_WELL} | search_settings(options, START),
        },
        "seeds": lots,
        "columns": {AS_RUN: as_run, AS_WRITTEN: written},
        "verdicts": [
            PREFERS_WIDE.decide(
                {"σ from which on it is the wide well": Evidence(as_run["thresholds"], 0.0, drawn.LARGEST_SCALE)},
                lots,
                AS_RUN,
                "the author's parabolas",
            ),
            PREFERS_WIDE.judge(
                threshold is not None,
                {"σ from which on it is the wide well": threshold, "the narrow well's width": NARROW_WELL[1]},
                setting=setting,
                column=AS_WRITTEN,
            ),
        ],
    }


def search_settings(options: ReplicationOptions, start: float) -> dict[str, Any]:
    rates = (MEAN_RATE, SCALE_RATE)
    steps = int(options.by_size(100, 300))
    return {"first": START_SCALES, "start": start, "steps": steps, "rates": rates, "population": POPULATION}


def _column_as_run(options: ReplicationOptions, seeds: Sequence[int]) -> dict[str, Any]:
    mean, scale = drawn.grid(options)
    surfaces = [
        drawn.drawn_surface(parabolas, mean, scale, drawn.draw_count(options), seed) for seed in drawn.seeds(options)
    ]
    x = torch.linspace(-drawn.MEAN_REACH, drawn.MEAN_REACH, 401, dtype=torch.float64)
    best_means = [mean[surface.argmin(1)] for surface in surfaces]
    return {
        "f": {"x": x.tolist(), "y": parabolas(x).tolist()},
        "surface": drawn.thinned_surface(mean, scale, surfaces[0]),
        "best": {"scale": scale[::4].tolist(), "mean": best_means[0][::4].tolist()},
        "thresholds": [
            parting_scale(scale, _within(best, WIDE_STRETCH), _within(best, NARROW_STRETCH)) for best in best_means
        ],
        "searches": _counts_of(
            search_ends(parabolas, START_AS_RUN, seeds, int(options.by_size(100, 300))), _in_stretch
        ),
    }


def _column_as_written(options: ReplicationOptions, seeds: Sequence[int]) -> dict[str, Any]:
    mean = torch.linspace(-4, 4, int(options.by_size(401, 8001)), dtype=torch.float64)
    scale = torch.logspace(-2, 0.5, int(options.by_size(26, 251)), dtype=torch.float64)
    best = torch.stack([mean[expected(mean, s).argmin()] for s in scale])
    thin_mean, thin_scale = torch.linspace(-4, 4, 81, dtype=torch.float64), torch.logspace(-2, 0.5, 31).double()
    steps = int(options.by_size(100, 300))
    settings = {"seeds": list(seeds), **search_settings(options, START)}
    ends = cached_part(options, "two-wells", settings, partial(search_ends, wells, START, seeds, steps))
    fine_grid = torch.linspace(-4, 4, 321, dtype=torch.float64)
    return {
        "f": {"x": fine_grid.tolist(), "y": wells(fine_grid[:, None]).tolist()},
        "surface": {
            "mean": thin_mean.tolist(),
            "scale": thin_scale.tolist(),
            "height": torch.stack([expected(thin_mean, s) for s in thin_scale]).tolist(),
        },
        "best": {
            "scale": scale[:: int(options.by_size(1, 5))].tolist(),
            "mean": best[:: int(options.by_size(1, 5))].tolist(),
        },
        "threshold": parting_scale(scale, inside_well(best, WIDE_WELL), inside_well(best, NARROW_WELL)),
        "searches": _counts_of(ends, _in_well),
        "points": f"{len(mean):,} μ and {len(scale)} σ from 0.01 to 3.2",
    }


def parting_scale(scale: Tensor, in_wide: Tensor, in_narrow: Tensor) -> float | None:
    """The σ from which on the best mean lies in the wide well, if it lies in the narrow one before; None if not."""
    first = int(in_wide.int().argmax())
    parted = bool(in_wide[first:].all()) and first > 0 and bool(in_narrow[:first].all())
    return float(scale[first]) if parted else None


def _within(w: Tensor, stretch: tuple[float, float]) -> Tensor:
    return (w > stretch[0]) & (w < stretch[1])


def _in_stretch(w: float) -> tuple[bool, bool]:
    return WIDE_STRETCH[0] < w < WIDE_STRETCH[1], NARROW_STRETCH[0] < w < NARROW_STRETCH[1]


def _in_well(w: float) -> tuple[bool, bool]:
    return inside_well(w, WIDE_WELL), inside_well(w, NARROW_WELL)


def _counts_of(
    ends: Mapping[str, Sequence[float]], places: Callable[[float], tuple[bool, bool]]
) -> dict[str, tuple[int, int, int]]:
    """How many searches end in the wide well, in the narrow one, and how many there are, by the σ at the start."""
    counts = {}
    for scale, each in ends.items():
        in_wide, in_narrow = zip(*(places(w) for w in each), strict=True)
        counts[scale] = sum(in_wide), sum(in_narrow), len(each)
    return counts


@torch.no_grad()
def search_ends(
    f: Callable[[Tensor], Tensor], start: float, seeds: Sequence[int], steps: int
) -> dict[str, list[float]]:
    """Where natural searches end by the σ they start with, from a place near to the narrow well."""
    ends_by_scale = {}
    for start_scale in START_SCALES:
        settings = Settings(
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
            search = Search([start], settings, seed)
            for _ in range(steps):
                search.tell(f(search.ask()).flatten())
            ends.append(float(search.mean))
        ends_by_scale[f"{start_scale:g}"] = ends
    return ends_by_scale


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [part for column, numbers in columns(result).items() for part in _parts(numbers, column)]


def _parts(numbers: Mapping[str, Any], column: str) -> list[PageElement]:
    surface, best = numbers["surface"], numbers["best"]
    drawn_alike = column == AS_RUN
    threshold = numbers["thresholds"][0] if drawn_alike else numbers["threshold"]
    caption = f"From σ = {threshold:.3g} on, the lowest U along μ lies in the wide well." if threshold else ""
    depths = (1.25, 1.625) if drawn_alike else (WIDE_WELL[2], NARROW_WELL[2])
    lowest = min(numbers["f"]["y"])
    return [
        Chart(
            f"Two wells, {column}",
            f"The wide one is {depths[0]:g} deep, the narrow one {depths[1]:g}.",
            "w",
            "f",
            [ChartLine("f", numbers["f"]["x"], numbers["f"]["y"])],
        ),
        Chart(
            f"U(μ, σ), {column}",
            f"The more ink, the higher. {caption}",
            "μ",
            "σ",
            [ChartLine("lowest U along μ", best["mean"], best["scale"])],
            contours=Contours(
                "U",
                surface["mean"],
                surface["scale"],
                surface["height"],
                drawn.even_levels(lowest, 0.0, LEVEL_COUNT) if drawn_alike else LEVELS,
            ),
            log_y=not drawn_alike,
        ),
        ResultTable(
            f"Where natural searches end that start at μ = {START_AS_RUN if drawn_alike else START:g}, {column}",
            ("σ at the start", "in the wide well", "in the narrow one", "of"),
            [[scale, *map(str, counts)] for scale, counts in numbers["searches"].items()],
            caption="What a search finds depends on how widely it looks at first.",
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
    reference={
        "document": "the search prefers the wide minimum where both are near; no numbers are printed",
        "note": "as run the wells are parabolas cut at 0: 0.2 (w + 4.5)(w − 0.5) below ½, 1.25 deep at −2, and "
        "26 (w − 2)(w − 2.5) above, 1.625 deep at 2.25; U is the mean of 15,000 draws that all 200 × 200 points share",
    },
    left_open=(
        "as written, the function: two Gaussian wells, one unit and 0.15 wide, 0.7 and 1 deep, 2.5 apart",
        "how searches are run: natural gradients, N = 50 independent draws, rates 0.5 and 0.2, from between the "
        "wells; as run from μ = 2, the edge of the narrow one",
    ),
    durations=("a second", "three minutes"),
    show=show,
)
