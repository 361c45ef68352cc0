"""A search under way, whatever is sought: workers, progress, Ctrl-C and a file to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.engine.checkpoint import Checkpointer, reserved
from doxa.engine.driver import advance_to_end, drive
from doxa.errors import Diverged
from doxa.search.ask_tell import Search
from doxa.search.engines.contract import Engine, EvaluationFailed, Exchange
from doxa.search.engines.follower import serialize_search
from doxa.search.engines.in_process import evaluate_in_process
from doxa.search.search_state import pack_search, restore_search
from doxa.terminal.interrupt import gentle_interrupt
from doxa.terminal.progress import Progress


class ResumableSearch(Protocol):
    """What is sought, and how far it has come: a function's lowest point, or a policy."""

    search: Search
    generations: int
    trajectory: list[dict[str, float]]

    @property
    def converged(self) -> bool:
        """Whether nothing is left to gain."""
        ...

    def run_generation(self, exchange: Exchange) -> None:
        """Let others evaluate all that is asked for, and move on by what it came to; or raise and stay where it was."""
        ...

    def progress_text(self) -> str:
        """The last generation in a line."""
        ...

    def partial_result(self) -> Any:
        """What has been found by now."""
        ...

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Numbers and tensors that it needs to go on, beside those of its search."""
        ...

    def load(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Go on where these were taken."""
        ...

    def require_fit(self, path: Path, header: Mapping[str, Any]) -> None:
        """Refuse a file that was written for something else."""
        ...


class SearchWork:
    """A search as work for the engine's driver: a unit is a generation, evaluated through an exchange."""

    def __init__(self, resumable_search: ResumableSearch, exchange: Exchange, file: Checkpointer | None = None) -> None:
        self.resumable_search, self.exchange, self.file = resumable_search, exchange, file

    @property
    def done(self) -> int:
        return self.resumable_search.search.generation

    @property
    def finished(self) -> bool:
        return self.done >= self.resumable_search.generations or self.resumable_search.converged

    @torch.no_grad()
    def advance(self) -> str:
        try:
            self.resumable_search.run_generation(self.exchange)
        except Exception as error:
            if self.file is None:
                raise
            raise self.with_partial_result(error) from error.__cause__
        return self.resumable_search.progress_text()

    def position(self) -> str:
        return f"after generation {self.done} of {self.resumable_search.generations}"

    def partial_result(self) -> Any:
        return self.resumable_search.partial_result()

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        (header, tensors), (extra_header, extra_tensors) = (
            pack_search(self.resumable_search.search),
            self.resumable_search.state(),
        )
        return {"trajectory": self.resumable_search.trajectory, **header, **extra_header}, {**tensors, **extra_tensors}

    def unpack(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        restore_search(self.resumable_search.search, header, tensors)
        rows = header["trajectory"]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or len(rows) != self.done:
            raise ValueError(f"trajectory must be a list of {self.done} generations")
        self.resumable_search.trajectory = rows
        self.resumable_search.load(header, tensors)

    def with_partial_result(self, error: Exception) -> Exception:
        """The error that ended a generation, with what had been found before it, which is kept."""
        assert self.file is not None
        note = f"{self.done} of {self.resumable_search.generations} generations were done before"
        if self.file.folder is not None and self.done > 0:
            if self.file.saved_unit != self.done:
                self.file.save_good(self)
            if self.file.saved_unit is not None:
                part = "" if self.file.saved_unit == self.done else f" up to generation {self.file.saved_unit}"
                note += f", and are kept{part} in {self.file.folder}: the same call and resume=True goes on from there"
        note += "; this error's .found holds what they came to"
        if not isinstance(error, Diverged | EvaluationFailed):  # the objective's own, in this process
            with suppress(AttributeError):  # some errors take no attribute
                error.found = self.partial_result()  # type: ignore[attr-defined]
            error.add_note(note)
            return error
        return type(error)(f"{error}. {note}", found=self.partial_result()).with_traceback(error.__traceback__)


def follow_search(resumable_search: ResumableSearch, exchange: Exchange) -> None:
    """Go on beside the search that this is a copy of, by what it and all others find."""
    advance_to_end(SearchWork(resumable_search, exchange))


@dataclass(frozen=True)
class CheckpointOptions:
    """Where a search of some kind is kept, if it is: what `checkpoint`, `checkpoint_every` and `resume` say."""

    kind: str
    folder: str | PathLike[str] | None
    settings: Mapping[str, Any]
    every: int
    resume: bool


def run_search(
    resumable_search: ResumableSearch, engine: Engine, checkpoint_options: CheckpointOptions, progress: bool
) -> SearchWork:
    """Start, or go on from the file, until there is nothing left to gain or someone asks to stop."""
    file = Checkpointer(
        checkpoint_options.kind,
        "run",
        checkpoint_options.folder,
        checkpoint_options.settings,
        is_due=lambda done: done % checkpoint_options.every == 0,
        check_header=resumable_search.require_fit,
        unsaved_note=": this error's .belief holds what was found",
    )
    with reserved(file.folder if engine.leads else None):
        file.reopen(SearchWork(resumable_search, evaluate_in_process), checkpoint_options.resume)
        if not engine.leads:
            file.folder = None
        progress_bar = Progress(
            progress and engine.leads,
            resumable_search.generations,
            1,
            resumable_search.search.generation,
            unit="generation",
        )
        with gentle_interrupt() as stop, engine.start_workers(partial(serialize_search, resumable_search)) as exchange:
            work = SearchWork(resumable_search, exchange, file)
            drive(work, file, progress_bar, stop)
    return work
