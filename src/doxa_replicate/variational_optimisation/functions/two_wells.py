"""A wide well beside a deeper narrow one: which of them a search prefers depends on how widely it looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa.search import Search, Settings, natural, shaping
from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.parts import kept
from doxa_replicate.show import Chart, Contours, Line, Shown, Table

WIDE, NARROW = (-1.0, 1.0, 0.7), (1.5, 0.15, 1.0)  # where, how wide, how deep
START, POPULATION = 1.0, 50
FIRST = (0.1, 0.2, 0.4, 0.8, 1.6)  # σ at the start of searches
RATE, SCALE_RATE = 0.5, 0.2
LEVELS = (-1.05, -0.9, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1, 0.0)
PREFERS = Claim(
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
    found = torch.zeros_like(mean)
    for where, width, depth in (WIDE, NARROW):
        square = width**2 + scale.square()
        found = found - depth * width * square.rsqrt() * torch.exp(-(mean - where).square() / (2 * square))
    return found


def inside(w: Any, well: tuple[float, float, float]) -> Any:
    """Whether points lie within one width of a well's middle."""
    return abs(w - well[0]) <= well[1]


def run(ask: Ask) -> Numbers:
    own = ask.these(2, 10)
    mean = torch.linspace(-4, 4, int(ask.of(401, 8001)), dtype=torch.float64)
    scale = torch.logspace(-2, 0.5, int(ask.of(26, 251)), dtype=torch.float64)
    best = torch.stack([mean[expected(mean, s).argmin()] for s in scale])
    wide = inside(best, WIDE)
    first = int(wide.int().argmax()) if bool(wide.any()) else len(scale)
    parted = bool(wide[first:].all()) and first < len(scale) and bool(inside(best[:first], NARROW).all())
    threshold = float(scale[first]) if first < len(scale) else None
    thin_mean, thin_scale = torch.linspace(-4, 4, 81, dtype=torch.float64), torch.logspace(-2, 0.5, 31).double()
    told = {"seeds": own, "first": FIRST, "start": START, "steps": ask.of(100, 300), "rates": (RATE, SCALE_RATE)}
    searches = kept(ask, "two-wells", told, partial(ended, own, int(ask.of(100, 300))))
    fine = torch.linspace(-4, 4, 321, dtype=torch.float64)
    return {
        "settings": {"wide": WIDE, "narrow": NARROW, "population": POPULATION} | told,
        "seeds": own,
        "f": {"x": fine.tolist(), "y": wells(fine[:, None]).tolist()},
        "surface": {
            "mean": thin_mean.tolist(),
            "scale": thin_scale.tolist(),
            "height": torch.stack([expected(thin_mean, s) for s in thin_scale]).tolist(),
        },
        "best": {"scale": scale[:: int(ask.of(1, 5))].tolist(), "mean": best[:: int(ask.of(1, 5))].tolist()},
        "threshold": threshold,
        "searches": searches,
        "verdicts": [
            PREFERS.judged(
                parted,
                {"σ from which on it is the wide well": threshold, "the narrow well's width": NARROW[1]},
                None,
                (),
                f"{len(mean):,} μ and {len(scale)} σ from 0.01 to 3.2; the integral is exact",
            )
        ],
    }


@torch.no_grad()
def ended(own: Sequence[int], steps: int) -> dict[str, list[float]]:
    """Where natural searches end by the σ they start with, from between the wells, nearer to the narrow one."""
    found = {}
    for first in FIRST:
        given = Settings(
            scale=first,
            size=POPULATION,
            antithetic=False,
            gradient=natural,
            shaping=shaping.raw,
            lr=RATE,
            scale_lr=SCALE_RATE,
        )
        ends = []
        for seed in own:
            search = Search([START], given, seed)
            for _ in range(steps):
                search.tell(wells(search.ask()))
            ends.append(float(search.mean))
        found[f"{first:g}"] = ends
    return found


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    surface, best = numbers["surface"], numbers["best"]
    rows = [
        [first, *(str(sum(inside(w, well) for w in ends)) for well in (WIDE, NARROW)), str(len(ends))]
        for first, ends in numbers["searches"].items()
    ]
    threshold = numbers["threshold"]
    says = f"From σ = {threshold:.3g} on, the lowest U along μ lies in the wide well." if threshold else ""
    return [
        Chart(
            "Two wells",
            f"The wide one is {WIDE[2]:g} deep, the narrow one {NARROW[2]:g}.",
            "w",
            "f",
            [Line("f", numbers["f"]["x"], numbers["f"]["y"])],
        ),
        Chart(
            "U(μ, σ)",
            f"The more ink, the higher. {says}",
            "μ",
            "σ",
            [Line("lowest U along μ", best["mean"], best["scale"])],
            contours=Contours("U", surface["mean"], surface["scale"], surface["height"], LEVELS),
            log_y=True,
        ),
        Table(
            f"Where natural searches end that start at μ = {START:g}",
            ("σ at the start", "in the wide well", "in the narrow one", "of"),
            rows,
            says="Both settle; the wider the first look, the more often in the wide well.",
        ),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/two-wells",
    place=5,
    group="functions",
    title="A wide local minimum beside a narrow global one",
    rows=("VO-14",),
    run=run,
    claims=(PREFERS,),
    reference={"document": "the search prefers the wide minimum where both are near; no numbers are printed"},
    left_open=(
        "the function: two Gaussian wells, one unit and 0.15 wide, 0.7 and 1 deep, 2.5 apart",
        "how searches are run: natural gradients, N = 50 independent draws, rates 0.5 and 0.2, from between the wells",
    ),
    takes=("a second", "half a minute"),
    show=show,
)
