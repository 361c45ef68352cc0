"""Ways to need fewer evaluations: shaping of values, importance mixing, adaptation sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from doxa import search
from doxa.errors import Diverged
from doxa.search import functions, shaping
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable

TARGET_VALUE, MAX_GENERATIONS, SPHERE_DIMENSION = 1e-6, 1000, 10
DEFAULT_SETTINGS = search.Settings()
SEARCH_SETTINGS = {
    "utilities": DEFAULT_SETTINGS,
    "centred ranks": replace(DEFAULT_SETTINGS, shaping=shaping.centred_ranks),
    "z-scores": replace(DEFAULT_SETTINGS, shaping=shaping.z_score),
    "independent draws": replace(DEFAULT_SETTINGS, antithetic=False),
    "importance mixing": replace(DEFAULT_SETTINGS, antithetic=False, refresh=0.1),
    "adaptation sampling": replace(DEFAULT_SETTINGS, adapts=True),
}
FUNCTIONS = {
    "sphere": (functions.sphere, [2.0] * SPHERE_DIMENSION),
    "Rosenbrock": (functions.rosenbrock, [-1.0, 1.0]),
    "Himmelblau": (functions.himmelblau, [0.0, 0.0]),
}


def run(options: ReplicationOptions) -> Numbers:
    seeds, max_generations = options.seed_list(2, 10), int(options.by_size(60, MAX_GENERATIONS))
    records = {
        name: {
            function_name: [
                _evaluations_needed(way_settings, *FUNCTIONS[function_name], seed, max_generations) for seed in seeds
            ]
            for function_name in FUNCTIONS
        }
        for name, way_settings in SEARCH_SETTINGS.items()
    }
    return {
        "settings": {"near": TARGET_VALUE, "generations_at_most": max_generations, "dimension": SPHERE_DIMENSION},
        "seeds": seeds,
        "ways": {
            name: {
                function_name: summarise_searches(seed_records) for function_name, seed_records in by_function.items()
            }
            for name, by_function in records.items()
        },
    }


def _evaluations_needed(
    settings: Any, f: Any, start: Sequence[float], seed: int, max_generations: int
) -> dict[str, Any]:
    """How many evaluations until a value is near the lowest, and the lowest that was seen."""
    under_way = search.Search(start, settings, seed)
    evaluations, best = 0, float("inf")
    for _ in range(max_generations):
        points = under_way.ask()
        evaluations += len(points)
        values = f(points)
        best = min([best, *values.tolist()])
        if best < TARGET_VALUE:
            return {"evaluations": evaluations, "best": best}
        try:
            under_way.tell(values)
        except Diverged:
            break
        if not torch.isfinite(under_way.mean).all():
            break
    return {"evaluations": None, "best": best}


def summarise_searches(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    evaluations = [record["evaluations"] for record in records if record["evaluations"] is not None]
    return {
        "arrived": len(evaluations),
        "of": len(records),
        "median_evaluations": float(np.median(evaluations)) if evaluations else None,
        "median_best": float(np.median([record["best"] for record in records])),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    ways = result["numbers"]["ways"]
    rows = [
        [name, *(_cell(by_function[function_name]) for function_name in FUNCTIONS)]
        for name, by_function in ways.items()
    ]
    return [
        ResultTable(
            "Evaluations until a value below 10⁻⁶, median of those that came there",
            ("way", *FUNCTIONS),
            rows,
            caption="In brackets how many of all seeds came there.",
        )
    ]


def _cell(summary: Mapping[str, Any]) -> str:
    if summary["median_evaluations"] is None:
        return f"none (lowest {summary['median_best']:.1g})"
    return f"{summary['median_evaluations']:,.0f} ({summary['arrived']} of {summary['of']})"


ARTEFACT = Artefact(
    name="variational-optimisation/fewer-evaluations",
    order=11,
    group="functions",
    title="Shaping, importance mixing, adaptation sampling: what they save",
    requirements=("VO-37", "VO-38", "VO-39"),
    run=run,
    reference={
        "document": "importance mixing, adaptation sampling and transforms of fitness are named, and left to others"
    },
    left_open=(
        "functions: a sphere in ten dimensions, Rosenbrock's and Himmelblau's in two; 1,000 generations at most",
        "all else: the separable natural evolution strategy that is the default; nothing was tuned",
    ),
    departures={"quick": ("60 generations, two seeds",)},
    durations=("some seconds", "half an hour, on busy cores"),
    show=show,
)
