"""What the three searches of Himmelblau's function have in common: how they run, and at which rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import torch

from doxa.errors import Diverged
from doxa.search import Search, Settings, natural, plain, shaping
from doxa.search.distribution.coordinates import Coordinate, variance
from doxa.search.distribution.gradients import Gradient
from doxa.search.functions import himmelblau
from doxa_replicate.contract import Ask
from doxa_replicate.parts import kept

START, SCALE, POPULATION = (0.0, 0.0), 1.0, 50
RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
SCALE_RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
APART = 100  # from here on seeds choose rates, and are not judged
STAY = 20  # steps in which f must stay at a level that counts as reached
GRADIENTS: dict[str, Gradient] = {"fixed": plain, "plain": plain, "natural": natural}


@dataclass(frozen=True)
class Rates:
    """Of the mean, and of the variance: 0 for one that stays."""

    mean: float
    scale: float


@dataclass(frozen=True)
class Size:
    """How much is run: steps, the seeds that choose rates, and between which rates."""

    steps: int
    choosing: int
    rates: tuple[float, ...]
    scale_rates: tuple[float, ...]


def size(ask: Ask) -> Size:
    return ask.of(Size(150, 1, (1e-2,), (3e-3,)), Size(400, 4, RATES, SCALE_RATES))


def seeds(ask: Ask) -> list[int]:
    return ask.these(2, 10)


def settings(ask: Ask) -> dict[str, Any]:
    own = size(ask)
    return {"start": START, "scale": SCALE, "population": POPULATION, **asdict(own)}


@torch.no_grad()
def search(
    gradient: str, rates: Rates, seed: int, steps: int, scale: float = SCALE, coordinate: Coordinate = variance
) -> dict[str, Any]:
    """A path of means with f there, and the σ and the norm of ∂U/∂mean of each step; short where all became infinite.

    The variance is the coordinate, all values count as they are and all draws are independent, as in the document.
    """
    given = Settings(
        scale=scale,
        per="network",
        size=POPULATION,
        antithetic=False,
        gradient=GRADIENTS[gradient],
        shaping=shaping.raw,
        coordinate=coordinate,
        lr=rates.mean,
        scale_lr=rates.scale,
    )
    own = Search(START, given, seed)
    path, f, told = [own.mean.tolist()], [float(himmelblau(own.mean))], []
    for _ in range(steps):
        try:
            told.append(own.tell(himmelblau(own.ask())))
        except Diverged:
            break
        here = float(himmelblau(own.mean))
        if not math.isfinite(here):
            break
        path.append(own.mean.tolist())
        f.append(here)
    return {
        "path": path,
        "f": f,
        "scale": [row["scale"] for row in told],
        "gradient": [row["gradient"] for row in told],
        "end": f[-1] if len(f) > steps else math.inf,
    }


def reached(record: Mapping[str, Any]) -> float:
    """The lowest level that f stays at: the least of its medians over twenty steps in a row."""
    f = record["f"]
    return float(min(median(f[k : k + STAY]) for k in range(max(1, len(f) - STAY + 1))))


def choice(ask: Ask, gradient: str, scale: float = SCALE) -> dict[str, Any]:
    """Every pair of rates with the level it reaches, where it ends and how often it got there; and the best of them."""
    own = size(ask)
    scale_rates = (0.0,) if gradient == "fixed" else own.scale_rates
    table = []
    for rates in (Rates(a, b) for a in own.rates for b in scale_rates):
        some = [search(gradient, rates, APART + k, own.steps, scale) for k in range(own.choosing)]
        table.append(
            {
                "mean": rates.mean,
                "scale": rates.scale,
                "reached": median(reached(one) for one in some),
                "end": median(one["end"] for one in some),
                "lasted": sum(math.isfinite(one["end"]) for one in some),
            }
        )
    best = min(table, key=lambda row: row["reached"])
    return {"table": table, "rates": {"mean": best["mean"], "scale": best["scale"]}}


def found(ask: Ask, gradient: str, scale: float = SCALE) -> dict[str, Any]:
    """The rates of one of the three searches and, with them, a record for each seed; made once for all figures."""
    told = settings(ask) | {"seeds": seeds(ask), "gradient": gradient, "scale": scale}

    def make() -> dict[str, Any]:
        chosen = choice(ask, gradient, scale)
        rates = Rates(**chosen["rates"])
        return chosen | {"seeds": [search(gradient, rates, seed, size(ask).steps, scale) for seed in seeds(ask)]}

    return kept(ask, f"himmelblau-{gradient}-{scale:g}", told, make)


def with_floor(ask: Ask, least: float, rates: Rates) -> list[float]:
    """Where plain searches end whose variance is kept from falling below a floor."""
    told = settings(ask) | {"seeds": seeds(ask), "least": least, "rates": asdict(rates)}
    coordinate = floored(least)

    def make() -> dict[str, Any]:
        some = [search("plain", rates, seed, size(ask).steps, coordinate=coordinate) for seed in seeds(ask)]
        return {"ends": [one["end"] for one in some]}

    return [_end(value) for value in kept(ask, f"himmelblau-plain-from-{least:g}", told, make)["ends"]]


def ends(of: Mapping[str, Any]) -> list[float]:
    """Where each seed ended; infinity where it did not."""
    return [_end(one["end"]) for one in of["seeds"]]


def _end(value: float | None) -> float:
    return math.inf if value is None else value  # JSON knows no infinity


def floored(least: float) -> Coordinate:
    """The variance, taken as `least` where it is lower."""
    return replace(variance, name=f"variance from {least:g} up", scale=lambda c: c.clamp_min(least).sqrt())
