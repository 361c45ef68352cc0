"""What the three searches of Himmelblau's function have in common as they are written: rates, and how they end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from statistics import mean, median
from typing import Any

import torch

from doxa.errors import Diverged
from doxa.search import Search, Settings, natural, plain, shaping
from doxa.search.distribution.coordinates import Coordinate, variance
from doxa.search.distribution.gradients import Gradient
from doxa.search.functions import himmelblau
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part

START, SCALE, POPULATION = (0.0, 0.0), 1.0, 50
RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
SCALE_RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
FIRST_CHOICE_SEED = 100  # from here on seeds choose rates, and are not judged
LEVEL_STEPS = 20  # steps in which f must stay at a level that counts as reached
GRADIENTS: dict[str, Gradient] = {"fixed": plain, "plain": plain, "natural": natural}


@dataclass(frozen=True)
class SearchRates:
    """Of the mean, and of the variance: 0 for one that stays."""

    mean: float
    scale: float


@dataclass(frozen=True)
class HimmelblauSize:
    """How much is run: steps, the seeds that choose rates, and between which rates."""

    steps: int
    choosing: int
    rates: tuple[float, ...]
    scale_rates: tuple[float, ...]


def run_size(options: ReplicationOptions) -> HimmelblauSize:
    return options.by_size(HimmelblauSize(150, 1, (1e-2,), (3e-3,)), HimmelblauSize(400, 4, RATES, SCALE_RATES))


def seeds(options: ReplicationOptions) -> list[int]:
    return options.seed_list(2, 20)


def common_settings(options: ReplicationOptions) -> dict[str, Any]:
    size = run_size(options)
    return {"start": START, "scale": SCALE, "population": POPULATION, **asdict(size)}


def run_search(
    gradient: str, rates: SearchRates, seed: int, steps: int, scale: float = SCALE, coordinate: Coordinate = variance
) -> dict[str, Any]:
    """A search as it is written: values count as they are, draws are independent, the variance is the coordinate."""
    search_settings = Settings(
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
    return follow(search_settings, seed, steps)


@torch.no_grad()
def follow(search_settings: Settings, seed: int, steps: int) -> dict[str, Any]:
    """A path of means with f there, and σ and the norm of ∂U/∂mean by step; short where all became infinite."""
    under_way = Search(START, search_settings, seed)
    path, f, step_metrics = [under_way.mean.tolist()], [float(himmelblau(under_way.mean))], []
    for _ in range(steps):
        try:
            step_metrics.append(under_way.tell(himmelblau(under_way.ask())))
        except Diverged:
            break
        value = float(himmelblau(under_way.mean))
        if not math.isfinite(value):
            break
        path.append(under_way.mean.tolist())
        f.append(value)
    return {
        "path": path,
        "f": f,
        "scale": [row["scale"] for row in step_metrics],
        "gradient": [row["gradient"] for row in step_metrics],
        "last_scale": float(under_way.distribution.scale),
        "end": f[-1] if len(f) > steps else math.inf,
    }


def lowest_level(record: Mapping[str, Any]) -> float:
    """The lowest level that f stays at: the least of its medians over twenty steps in a row."""
    f = record["f"]
    return float(min(median(f[k : k + LEVEL_STEPS]) for k in range(max(1, len(f) - LEVEL_STEPS + 1))))


def choose_rates(options: ReplicationOptions, gradient: str, scale: float = SCALE) -> dict[str, Any]:
    """Every pair of rates with the level it reaches, where it ends and how often it got there; and the best of them."""
    size = run_size(options)
    scale_rates = (0.0,) if gradient == "fixed" else size.scale_rates
    table = []
    for rates in (SearchRates(mean_rate, scale_rate) for mean_rate in size.rates for scale_rate in scale_rates):
        records = [run_search(gradient, rates, FIRST_CHOICE_SEED + k, size.steps, scale) for k in range(size.choosing)]
        table.append(
            {
                "mean": rates.mean,
                "scale": rates.scale,
                "reached": median(lowest_level(record) for record in records),
                "end": median(record["end"] for record in records),
                "lasted": sum(math.isfinite(record["end"]) for record in records),
            }
        )
    best = min(table, key=lambda row: row["reached"])
    return {"table": table, "rates": {"mean": best["mean"], "scale": best["scale"]}}


def searches_of(options: ReplicationOptions, gradient: str, scale: float = SCALE) -> dict[str, Any]:
    """The rates of one of the three searches and, with them, a record for each seed; made once for all figures."""
    settings = common_settings(options) | {"seeds": seeds(options), "gradient": gradient, "scale": scale}

    def make() -> dict[str, Any]:
        choice = choose_rates(options, gradient, scale)
        rates = SearchRates(**choice["rates"])
        return choice | {
            "seeds": [run_search(gradient, rates, seed, run_size(options).steps, scale) for seed in seeds(options)]
        }

    return cached_part(options, f"himmelblau-{gradient}-{scale:g}", settings, make)


def ends_with_floor(options: ReplicationOptions, floor: float, rates: SearchRates) -> list[float]:
    """Where plain searches end whose variance is kept from falling below a floor."""
    settings = common_settings(options) | {"seeds": seeds(options), "least": floor, "rates": asdict(rates)}
    coordinate = floored_variance(floor)

    def make() -> dict[str, Any]:
        records = [
            run_search("plain", rates, seed, run_size(options).steps, coordinate=coordinate) for seed in seeds(options)
        ]
        return {"ends": [record["end"] for record in records]}

    return [
        _end_or_infinity(value)
        for value in cached_part(options, f"himmelblau-plain-from-{floor:g}", settings, make)["ends"]
    ]


def final_values(searches_record: Mapping[str, Any]) -> list[float]:
    """Where each seed ended; infinity where it did not."""
    return [_end_or_infinity(record["end"]) for record in searches_record["seeds"]]


def _end_or_infinity(value: float | None) -> float:
    return math.inf if value is None else value  # JSON knows no infinity


def log_gradient_growth(searches_record: Mapping[str, Any]) -> list[float]:
    """log ‖∂U/∂mean‖, its mean over the last twenty steps less that of the first; for each seed.

    Steps whose norm is no number, or nothing, do not count.
    """
    logs = [[math.log(norm) for norm in record["gradient"] if norm] for record in searches_record["seeds"]]
    return [mean(values[-LEVEL_STEPS:]) - values[0] for values in logs]


def gradient_growth(searches_record: Mapping[str, Any]) -> list[float]:
    """The norm of ∂U/∂mean where σ is first as small as it gets, over that of the first step; for each seed."""
    return [
        record["gradient"][smallest_scale_step(record)] / record["gradient"][0] for record in searches_record["seeds"]
    ]


def growth_before_smallest(searches_record: Mapping[str, Any]) -> list[float]:
    """The same of the twenty steps that lead there, by their median."""
    return [
        median(
            record["gradient"][max(0, smallest_scale_step(record) - LEVEL_STEPS) : smallest_scale_step(record)]
            or [math.nan]
        )
        / record["gradient"][0]
        for record in searches_record["seeds"]
    ]


def smallest_scale_step(record: Mapping[str, Any]) -> int:
    """The first step with the smallest σ of all."""
    step: int = record["scale"].index(min(record["scale"]))
    return step


def floored_variance(floor: float) -> Coordinate:
    """The variance, taken as `floor` where it is lower."""
    return replace(variance, name=f"variance from {floor:g} up", scale=lambda c: c.clamp_min(floor).sqrt())
