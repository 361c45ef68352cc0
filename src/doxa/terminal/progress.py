"""What a run shows while it goes: one line on the terminal's error stream, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

# What a search tells of each generation beside its values, and how it is called on the terminal.
SEARCH_METRICS = {"scale": "scale", "gradient": "‖∂mean‖", "scale_gradient": "‖∂log scale‖"}


def format_metrics(row: Mapping[str, float], *values: str) -> str:
    """A generation of a search in a line: values by name, the scale and the norms of the slopes."""
    parts = [f"{name} {row[name]:.4g}" for name in values if name in row]
    return "  ".join([*parts, *(f"{label} {row[name]:.2g}" for name, label in SEARCH_METRICS.items())])


class Progress:
    """Epoch, NLL, KL and validation score, as they come; silent unless a person is watching."""

    def __init__(
        self,
        enabled: bool,
        epochs: int,
        batches: int,
        done: int,
        members: int = 1,
        prefix: str = "",
        unit: str = "epoch",
    ) -> None:
        self.epochs, self.batches, self.done, self.members, self.prefix = epochs, batches, done, members, prefix
        self.unit = unit
        self.text = ""
        self.bar: Any = None
        if enabled and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[text]}"),
                TimeRemainingColumn(compact=True),
                console=Console(stderr=True),
                transient=False,
            )

    def __enter__(self) -> Progress:
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task("fit", total=self.epochs * self.batches, completed=self.done, text="")
        return self

    def step(self, done: int) -> None:
        if self.bar is not None:
            epoch = min(done // self.batches + 1, self.epochs)
            self.bar.update(
                self.task, completed=done, description=f"{self.prefix}{self.unit} {epoch}/{self.epochs}", text=self.text
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()


def epoch_text(rows: list[dict[str, float]], members: int) -> str:
    """What every member reached last: the middle and the extremes of a fleet."""
    if not rows:
        return ""
    parts = [f"NLL {_median_and_range(rows, 'nll', '.4f')}"]
    if "objective" in rows[0]:  # of a search, which has no KL
        names = [name for name in ("objective", *SEARCH_METRICS) if name in rows[0]]
        parts += [f"{SEARCH_METRICS.get(name, name)} {_median_and_range(rows, name, '.3g')}" for name in names]
    else:
        parts.append(f"KL {_median_and_range(rows, 'kl', ',.0f')}")
    if "validation_nll" in rows[0]:
        parts.append(f"validation {_median_and_range(rows, 'validation_nll', '.4f')}")
    return "  ".join([f"{members} nets", *parts] if members > 1 else parts)


def _median_and_range(rows: list[dict[str, float]], name: str, form: str) -> str:
    values = sorted(row[name] for row in rows)
    if len(values) == 1:
        return f"{values[0]:{form}}"
    return f"{values[len(values) // 2]:{form}} ({values[0]:{form}} to {values[-1]:{form}})"
