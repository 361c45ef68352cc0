"""A search under way, whatever is sought: workers, progress, Ctrl-C and a file to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.interrupt import gentle_interrupt
from doxa.progress import Progress
from doxa.search.ask_tell import Search
from doxa.search.engines.contract import Engine, Exchange
from doxa.search.engines.follower import copied
from doxa.search.saved import File


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


def ended(under_way: UnderWay) -> bool:
    return under_way.search.generation >= under_way.generations or under_way.over


@torch.no_grad()
def accompany(under_way: UnderWay, exchange: Exchange) -> None:
    """Go on beside the search that this is a copy of, by what it and all others find."""
    while not ended(under_way):
        under_way.generation(exchange)


@torch.no_grad()
def pursue(under_way: UnderWay, engine: Engine, file: File, progress: bool) -> None:
    """Start, or go on from the file, until there is nothing left to gain or someone asks to stop."""
    search = under_way.search
    file.reopen(under_way)
    if not engine.leads:
        file.folder = None
    shown = Progress(progress and engine.leads, under_way.generations, 1, search.generation, unit="generation")
    with shown, gentle_interrupt() as stop, engine.working(partial(copied, under_way)) as exchange:
        while not ended(under_way):
            try:
                under_way.generation(exchange)
            except Exception as error:
                raise file.broken_off(under_way, error) from error.__cause__
            shown.words = under_way.words()
            shown.step(search.generation)
            file.after(under_way, last=ended(under_way))
            if stop.is_set() and not ended(under_way):
                raise file.interrupted(under_way)
