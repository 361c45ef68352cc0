"""What work says of itself: where it began or went on, what it has done, and what it is about to save."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from doxa.engine.checkpoint import CHECKPOINT, Checkpointer


def listen(report: Callable[[str, str, str], None], root: str) -> None:
    """Hear of all checkpoints of this process, for good: an event, the name of the newest file below root, and a unit.

    `resumed` tells where the work stands once its folder was looked into, `done` a unit that is not saved yet, and
    `unit` what the next file to be put in place stands at.
    """
    process, reopen, save = os.getpid(), Checkpointer.reopen, Checkpointer.save

    def tell(event: str, checkpointer: Checkpointer, unit: int) -> None:
        if checkpointer.folder is not None and os.getpid() == process:
            report(event, os.path.relpath(checkpointer.folder / CHECKPOINT, root), str(unit))

    def heard_reopen(self: Checkpointer, work: Any, resume: bool) -> None:
        reopen(self, work, resume)
        tell("resumed", self, self.saved_unit or 0)
        is_due = self.is_due

        def heard_is_due(unit: int) -> bool:
            tell("done", self, unit)
            return is_due(unit)

        self.is_due = heard_is_due

    def heard_save(self: Checkpointer, work: Any) -> None:
        tell("unit", self, work.done)
        save(self, work)

    Checkpointer.reopen, Checkpointer.save = heard_reopen, heard_save  # type: ignore[method-assign]
