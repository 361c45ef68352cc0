"""What a run shows while it goes: one line on the terminal's error stream, nothing elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class Progress:
    """Epoch, NLL, KL and validation score, as they come; silent unless a person is watching."""

    def __init__(self, wanted: bool, epochs: int, batches: int, done: int) -> None:
        self.epochs, self.batches, self.done = epochs, batches, done
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
            self.bar.update(self.task, completed=done, description=f"epoch {epoch}/{self.epochs}", words=self.words)

    def epoch(self, row: dict[str, float]) -> None:
        parts = [f"NLL {row['nll']:.4f}", f"KL {row['kl']:,.0f}"]
        if "validation_nll" in row:
            parts.append(f"validation {row['validation_nll']:.4f}")
        self.words = "  ".join(parts)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
