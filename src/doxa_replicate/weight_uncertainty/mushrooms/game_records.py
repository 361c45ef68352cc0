"""What is kept of a game, and what the games of several seeds come to, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from doxa import bandits
from doxa_replicate.weight_uncertainty.mushrooms.agents import GameSize

CURVE_POINTS, RATE_WINDOWS = 200, 50  # of a curve, and of an eating rate
POISON_REGRET = 15.0  # the expected regret of a poisonous one eaten

GameRecord = dict[str, Any]  # what an agent did in one game


def game_record(outcome: bandits.Outcome, size: GameSize) -> GameRecord:
    """The curves of a game, thin enough to keep."""
    shares = outcome.rates("eat", max(1, size.steps // RATE_WINDOWS))
    curves: dict[str, Tensor] = {
        "regret": outcome.regret,
        "expected": outcome.expected_regret,
        "false_positives": outcome.false_positives("eat"),
        "false_negatives": outcome.false_negatives("eat"),
    }
    steps, _ = bandits.thinned(outcome.regret, CURVE_POINTS)
    thin_curves: GameRecord = {name: bandits.thinned(curve, CURVE_POINTS)[1] for name, curve in curves.items()}
    rates = {f"eats_{name}": torch.round(share, decimals=4) for name, share in shares.items()}
    return {"steps": steps, **thin_curves, **rates, "trouble": outcome.trouble}


def mean_curve(games: Sequence[GameRecord], name: str) -> dict[str, list[float | None]]:
    """Mean and standard error of a curve over seeds, point by point; None where no seed has it."""
    rows = torch.tensor([[math.nan if v is None else v for v in game[name]] for game in games], dtype=torch.float64)
    counts = rows.isfinite().sum(0)
    mean = rows.nanmean(0)
    se = ((rows - mean).square().nansum(0) / (counts - 1) / counts).sqrt()  # no number where one seed has it
    return {"mean": _round_values(mean), "se": _round_values(se)}


def _round_values(values: Tensor) -> list[float | None]:
    return [None if not math.isfinite(v) else float(f"{v:.5g}") for v in values.tolist()]


def diverged_count(games: Sequence[GameRecord]) -> int:
    """In how many games the agent diverged, and learned no more."""
    return sum(bool(game.get("trouble")) for game in games)


def final_values(games: Sequence[GameRecord], name: str = "regret") -> list[float]:
    """Where a curve ends, seed by seed."""
    return [float(game[name][-1]) for game in games]


def growth(games: Sequence[GameRecord], name: str, start: float, end: float = 1.0) -> list[float]:
    """By how much a curve rises from one share of the game to another, seed by seed."""

    def value(curve: Sequence[float], share: float) -> float:
        return float(curve[max(0, round(share * len(curve)) - 1)])

    return [value(game[name], end) - value(game[name], start) for game in games]


def format_interval(difference: bandits.PairedDifference) -> str:
    """A difference by pairs in words."""
    return (
        f"{difference.mean:,.0f} (95 % from {difference.low:,.0f} to {difference.high:,.0f}, "
        f"{100 * difference.won:.0f} % of seeds won)".replace("-", "−")
    )
