"""The one loop: units of work, each of them a transaction with what is saved of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

from doxa.errors import Interrupted

if TYPE_CHECKING:
    from doxa.engine.checkpoint import Checkpointer
    from doxa.terminal.interrupt import StopRequest
    from doxa.terminal.progress import Progress


class Work(Protocol):
    """Something that is done unit by unit, can be saved after any of them, and goes on from there to the same bits."""

    @property
    def done(self) -> int:
        """Units."""
        ...

    @property
    def finished(self) -> bool: ...

    def advance(self) -> str:
        """Do the next unit, wholly or not at all; what is to be told of it while it goes on."""
        ...

    def position(self) -> str:
        """Where it stands, in words, as in `after step 3 of 5`."""
        ...

    def partial_result(self) -> Any:
        """What it has come to, where it is broken off."""
        ...

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that it takes to go on, plain JSON and tensors by name; or Diverged, where nobody should."""
        ...

    def unpack(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Go on where these were packed."""
        ...


def drive(work: Work, checkpointer: Checkpointer, progress: Progress, stop: StopRequest) -> None:
    """Work until it is finished, or until somebody asks to stop."""
    with progress as display:
        finished = work.finished
        while not finished:
            display.text = work.advance()
            display.step(work.done)
            finished = work.finished
            # A unit, what was observed in it and the end of an epoch are one: only then is it saved.
            if checkpointer.folder is not None and (finished or checkpointer.is_due(work.done)):
                checkpointer.save_good(work)
            if stop.is_set() and not finished:
                note = checkpointer.save_interrupted(work)
                raise Interrupted(f"stopped {work.position()}{note}", work.partial_result(), stop.signal)


def advance_to_end(work: Work) -> None:
    """Go on beside the work that this is a copy of, to the same end."""
    while not work.finished:
        work.advance()
