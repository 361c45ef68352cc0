"""A run of a few rows that is learned in no time, and what its tests do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from doxa.runs import Plan, learn, load_training_data

POINT = Plan(net="mlp:2", learner="point", epochs=1, draws=2)
AUTO = Plan(net="mlp:2", kl_weight="0.1", epochs=1, members=2, draws=2)


def rows() -> dict[str, Any]:
    x = np.linspace(-2, 2, 40)
    return {"x": x, "y": 3 * x + np.random.default_rng(0).normal(size=40)}


def learned(folder: Path, plan: Plan = POINT, **settings: Any) -> Any:
    return learn(load_training_data(rows(), "y"), plan, folder, progress=False, **settings)


def bits(folder: Path) -> list[bytes]:
    """All of a run that does not tell the time."""
    return [(folder / name).read_bytes() for name in ("run.json", "belief.doxa", "table.doxa")]


def flip(*paths: Path) -> None:
    """Flip a bit in the middle of files."""
    for path in paths:
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
