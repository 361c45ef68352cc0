"""Results with every number that a float or JSON can hold, in every place where one may stand; the same by the seed."""

from __future__ import annotations

import math
import random
from typing import Any

SPECIAL = (
    None, 0, 0.0, -0.0, 1, -1, 0.5, 0.95, 1.0, 5e-324, -5e-324, 2.2e-308, 1e-300, 1e-30, 1e-12, 1e30, 1e31, 1e100,
    1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan, 2**53 + 1, 2**64, -(2**64),
    10**6, 10**17, 0.1 + 2**-50,
)  # fmt: skip
COLUMNS = {
    "reliability": ("confidence", "accuracy", "count"),
    "entropy": ("inside", "outside"),
    "pruning": ("share", "error", "se"),
    "signal_to_noise": ("count",),
    "intervals": ("level", "coverage", "se"),
    "band": ("x", "mean", "lower", "upper", "aleatoric_lower", "aleatoric_upper"),
    "attack": ("radius", "accuracy", "se"),
}
NEVER_NULL = {"count", "inside", "outside", "share", "level", "x", "radius", "edges", "train_x", "truth_x"}


def odd_number(rng: random.Random) -> Any:
    """Any number, or none."""
    kind = rng.randrange(5)
    if kind < 2:
        return rng.choice(SPECIAL)
    if kind == 2:
        return rng.uniform(-2, 2)
    if kind == 3:
        return rng.uniform(-1, 1) * 10.0 ** rng.uniform(-320, 308)
    return rng.randrange(-3, 50)


def odd_column(rng: random.Random, length: int, never_null: bool = False) -> list[Any]:
    """Numbers of many sizes, of one size, all the same, or all alike but for one."""
    kind = rng.randrange(4)
    if kind == 0:
        values = [odd_number(rng) for _ in range(length)]
    elif kind == 1:
        scale = 10.0 ** rng.uniform(-320, 300)
        values = [scale * rng.uniform(-1, 1) for _ in range(length)]
    elif kind == 2:
        values = [odd_number(rng)] * length
    else:
        values = [rng.random()] * length
        values[rng.randrange(length)] = odd_number(rng)
    known = [v if isinstance(v, int) or (v is not None and math.isfinite(v)) else 1 for v in values]
    return known if never_null else values


def odd_section(rng: random.Random, section: str) -> Any:
    """A section of a result that passes for one."""
    length = rng.choice([1, 1, 2, 3, 10, 40])
    if section == "history":
        names = ("nll", "validation_nll", "kl")
        columns = {name: odd_column(rng, length) for name in names if rng.random() < 0.8}
        return [{name: column[k] for name, column in columns.items()} for k in range(length)]
    if section == "unsure":
        return [
            {
                "image": [odd_column(rng, 3) for _ in range(2)],
                "label": rng.choice([0, 1, -1, -7, 99, 10**30, "word", ""]),
                "probabilities": odd_column(rng, rng.randrange(1, 6)) if rng.random() < 0.9 else [],
            }
            for _ in range(rng.randrange(1, 4))
        ]
    table: dict[str, Any] = {}
    for name in COLUMNS[section]:
        if name in ("se", "outside", "aleatoric_lower", "aleatoric_upper") and rng.random() < 0.3:
            continue
        table[name] = odd_column(rng, length, name in NEVER_NULL)
    if section in ("entropy", "signal_to_noise"):
        table["edges"] = odd_column(rng, length + 1, never_null=True)
    if section == "pruning" and rng.random() < 0.5:
        table["rmse"] = table.pop("error")
    if section == "band":
        for x, y in (("train_x", "train_y"), ("truth_x", "truth_y")):
            size = rng.randrange(0, 5)
            if size:
                table |= {x: odd_column(rng, size, never_null=True), y: odd_column(rng, size)}
    return table


def odd_scores(rng: random.Random) -> dict[str, Any]:
    """Scores known and unknown, with errors, or without."""
    names = ("error", "rmse", "nll", "crps", "ece", "coverage_90", "auroc_entropy", "lppd", "unheard_of")
    return {
        name: {
            "value": odd_number(rng),
            "error": rng.choice([None, 0.0, 5e-324, 1e-300, 0.01, 1e30, 1e308, math.inf]),
            "over": rng.choice(["seeds", "draws", "", "x"]),
            "count": rng.choice([1, 5, 0, 2**64]),
        }
        for name in names
        if rng.random() < 0.7
    }


def odd_result(rng: random.Random, *sections: str) -> dict[str, Any]:
    """A result with these sections."""
    return {
        "name": rng.choice(["a", "b", "", "=x"]),
        "data": {
            "name": "d",
            "rows": rng.choice([0, 1, 2**40, 2**64]),
            "classes": rng.choice([[], ["x", "1", ""]]),
        },
        "settings": {"lr": odd_number(rng), "deep": [[[odd_number(rng)]]], "table": {"k": odd_number(rng)}},
        "stamp": {"seconds": odd_number(rng), "seeds": [0, 2**64], "versions": rng.choice([{}, {"a": "1"}])},
        "scores": odd_scores(rng),
        **{section: odd_section(rng, section) for section in sections},
    }
