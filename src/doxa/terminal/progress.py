"""What a run shows while it goes: one line on the terminal's error stream, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

# What a search tells of each generation beside its values, and how it is called on the terminal.
SEARCH = {"scale": "scale", "gradient": "‖∂mean‖", "scale_gradient": "‖∂log scale‖"}


def told(row: Mapping[str, float], *values: str) -> str:
    """A generation of a search in a line: values by name, the scale and the norms of the slopes."""
    parts = [f"{name} {row[name]:.4g}" for name in values if name in row]
    return "  ".join([*parts, *(f"{word} {row[name]:.2g}" for name, word in SEARCH.items())])


class Progress:
    """Epoch, NLL, KL and validation score, as they come; silent unless a person is watching."""

    def __init__(
        self,
        wanted: bool,
        epochs: int,
        batches: int,
        done: int,
        members: int = 1,
        part: str = "",
        unit: str = "epoch",
    ) -> None:
        self.epochs, self.batches, self.done, self.members, self.part = epochs, batches, done, members, part
        self.unit = unit
        self.words = ""
        self.bar: Any = None
        if wanted and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[words]}"),
                TimeRemainingColumn(compact=True),
                console=Console(stderr=True),
                transient=False,
            )

    def __enter__(self) -> Progress:
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task("fit", total=self.epochs * self.batches, completed=self.done, words="")
        return self

    def step(self, done: int) -> None:
        if self.bar is not None:
            epoch = min(done // self.batches + 1, self.epochs)
            self.bar.update(
                self.task, completed=done, description=f"{self.part}{self.unit} {epoch}/{self.epochs}", words=self.words
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()


def epoch_words(rows: list[dict[str, float]], members: int) -> str:
    """What every member reached last: the middle and the extremes of a fleet."""
    if not rows:
        return ""
    parts = [f"NLL {_middle(rows, 'nll', '.4f')}"]
    if "objective" in rows[0]:  # of a search, which has no KL
        known = [name for name in ("objective", *SEARCH) if name in rows[0]]
        parts += [f"{SEARCH.get(name, name)} {_middle(rows, name, '.3g')}" for name in known]
    else:
        parts.append(f"KL {_middle(rows, 'kl', ',.0f')}")
    if "validation_nll" in rows[0]:
        parts.append(f"validation {_middle(rows, 'validation_nll', '.4f')}")
    return "  ".join([f"{members} nets", *parts] if members > 1 else parts)


def _middle(rows: list[dict[str, float]], name: str, form: str) -> str:
    values = sorted(row[name] for row in rows)
    if len(values) == 1:
        return f"{values[0]:{form}}"
    return f"{values[len(values) // 2]:{form}} ({values[0]:{form}} to {values[-1]:{form}})"
