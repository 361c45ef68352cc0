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

from doxa.engine.checkpoint import Checkpointer
from doxa.engine.driver import accompany, drive
from doxa.errors import Diverged
from doxa.search.ask_tell import Search
from doxa.search.engines.contract import Engine, EvaluationFailed, Exchange
from doxa.search.engines.follower import copied
from doxa.search.engines.in_process import evaluated
from doxa.search.saved import packed, restore
from doxa.terminal.interrupt import gentle_interrupt
from doxa.terminal.progress import Progress


class UnderWay(Protocol):
    """What is sought, and how far it has come: a function's lowest point, or a policy."""

    search: Search
    generations: int
    trajectory: list[dict[str, float]]

    @property
    def over(self) -> bool:
        """Whether nothing is left to gain."""
        ...

    def generation(self, exchange: Exchange) -> None:
        """Let others evaluate all that is asked for, and move on by what it came to; or raise and stay where it was."""
        ...

    def words(self) -> str:
        """The last generation in a line."""
        ...

    def found(self) -> Any:
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


class Searching:
    """A search as work for the engine's driver: a unit is a generation, evaluated through an exchange."""

    def __init__(self, under_way: UnderWay, exchange: Exchange, file: Checkpointer | None = None) -> None:
        self.under_way, self.exchange, self.file = under_way, exchange, file

    @property
    def done(self) -> int:
        return self.under_way.search.generation

    @property
    def finished(self) -> bool:
        return self.done >= self.under_way.generations or self.under_way.over

    @torch.no_grad()
    def advance(self) -> str:
        try:
            self.under_way.generation(self.exchange)
        except Exception as error:
            if self.file is None:
                raise
            raise self.broken_off(error) from error.__cause__
        return self.under_way.words()

    def place(self) -> str:
        return f"after generation {self.done} of {self.under_way.generations}"

    def found(self) -> Any:
        return self.under_way.found()

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        (header, tensors), (own, more) = packed(self.under_way.search), self.under_way.state()
        return {"trajectory": self.under_way.trajectory, **header, **own}, {**tensors, **more}

    def unpack(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        restore(self.under_way.search, header, tensors)
        self.under_way.trajectory = header["trajectory"]
        self.under_way.load(header, tensors)

    def broken_off(self, error: Exception) -> Exception:
        """The error that ended a generation, with what had been found before it, which is kept."""
        assert self.file is not None
        words = f"{self.done} of {self.under_way.generations} generations were done before"
        if self.file.folder is not None and self.done > 0:
            if self.file.holds != self.done:
                self.file.save(self)
            words += f", and are kept in {self.file.folder}: the same call and resume=True goes on from there"
        words += "; this error's .found holds what they came to"
        if not isinstance(error, Diverged | EvaluationFailed):  # the objective's own, in this process
            with suppress(AttributeError):  # some errors take no attribute
                error.found = self.found()  # type: ignore[attr-defined]
            error.add_note(words)
            return error
        return type(error)(f"{error}. {words}", found=self.found()).with_traceback(error.__traceback__)


def follow(under_way: UnderWay, exchange: Exchange) -> None:
    """Go on beside the search that this is a copy of, by what it and all others find."""
    accompany(Searching(under_way, exchange))


@dataclass(frozen=True)
class Keeping:
    """Where a search of some kind is kept, if it is: what `checkpoint`, `checkpoint_every` and `resume` say."""

    kind: str
    folder: str | PathLike[str] | None
    settings: Mapping[str, Any]
    every: int
    resume: bool


def pursue(under_way: UnderWay, engine: Engine, keeping: Keeping, progress: bool) -> Searching:
    """Start, or go on from the file, until there is nothing left to gain or someone asks to stop."""
    file = Checkpointer(
        keeping.kind,
        "run",
        keeping.folder,
        keeping.settings,
        due=lambda done: done % keeping.every == 0,
        fits=under_way.require_fit,
        instead=": this error's .belief holds what was found",
    )
    file.reopen(Searching(under_way, evaluated), keeping.resume)
    if not engine.leads:
        file.folder = None
    shown = Progress(
        progress and engine.leads, under_way.generations, 1, under_way.search.generation, unit="generation"
    )
    with gentle_interrupt() as stop, engine.working(partial(copied, under_way)) as exchange:
        work = Searching(under_way, exchange, file)
        drive(work, file, shown, stop)
    return work
