"""Small tables, settings that learn in no time, and how a command ended."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TINY = ("--net", "mlp:8", "--epochs", "3", "--kl-weight", "0.1", "--members", "1", "--draws", "8")


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The one line of an error."""
        assert self.out == ""
        assert "Traceback" not in self.err
        (line,) = [line for line in self.err.splitlines() if line.startswith("doxa: ")]
        assert self.err.rstrip("\n").endswith(line)
        return line


Command = Callable[..., CommandResult]


def started(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """A command in a process of its own, with one thread."""
    return subprocess.Popen(
        [sys.executable, "-m", "doxa_cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def write(path: Path, columns: dict[str, Sequence[Any]]) -> Path:
    """A table as a CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def houses(rows: int = 80, seed: int = 0) -> dict[str, Sequence[Any]]:
    rng = np.random.default_rng(seed)
    size = rng.uniform(40, 200, rows).round(1)
    town = rng.choice(["Ghent", "Rio"], rows)
    price = (2000 * size + np.where(town == "Rio", 50_000, 0) + rng.normal(0, 20_000, rows)).round()
    return {"size": size.tolist(), "town": town.tolist(), "price": price.tolist()}


def flowers(rows: int = 80, names: Sequence[str] = ("iris", "rose")) -> dict[str, Sequence[Any]]:
    x = np.random.default_rng(0).normal(size=rows)
    return {"x": x.tolist(), "kind": [names[int(v > 0)] for v in x]}
