"""Checkpoints that were written before gradients, steppers and collectors were parts of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

CURRENT_PREFIXES = {
    "best.": "collector.best.",
    "replay.": "source.replay.",
    "policy.": "source.policy.",
    "game.": "source.",
}


def translate_legacy(
    header: Mapping[str, Any], tensors: Mapping[str, Tensor], nets: int
) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
    """Header and tensors as they are written now, of members of so many nets each."""
    if "numbers" in header:
        return header, tensors
    renamed = {_current_name(name): t for name, t in tensors.items()}
    if "training.scales" in renamed:  # of a search: what the last step added was in them already
        renamed["training.scale_step"] = torch.zeros_like(renamed["training.scales"])
    best = header.get("best_epochs", [])
    nets_with_best = [k * nets + j for k, epoch in enumerate(best) if epoch >= 0 for j in range(nets)]
    monitor = {name: header[name] for name in ("histories", "best_epochs", "troubles") if name in header}
    numbers = {
        "training": {},
        "optimiser": header.get("optimiser", {}),
        "collector": {"known": nets_with_best},
        "source": {},
        "monitor": monitor,
    }
    done = header["done"]
    if header["format"] == "doxa.bandits":  # which counted steps of the game
        renamed["source.clock"] = torch.tensor([done])
        done *= header["settings"]["updates"] or 1
    return {**header, "numbers": numbers, "done": done}, renamed


def _current_name(name: str) -> str:
    if name == "running":
        return "monitor.running"
    return next((new + name.removeprefix(old) for old, new in CURRENT_PREFIXES.items() if name.startswith(old)), name)
