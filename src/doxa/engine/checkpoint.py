"""Work as a file, and back: all that an exact resume needs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from doxa import kernels as native
from doxa.errors import BadInput, BrokenFile, Diverged, NewerFile
from doxa.storage import sealed
from doxa.storage.describe import describe
from doxa.storage.lock import folder_lock
from doxa.version import VERSION

if TYPE_CHECKING:
    from doxa.engine.driver import Work

CHECKPOINT, PREVIOUS, BELIEF = "checkpoint.doxa", "checkpoint-previous.doxa", "belief.doxa"


def has_checkpoint(folder: Path) -> bool:
    """Whether there is something to go on from in a folder, be it only the last checkpoint but one."""
    return (folder / CHECKPOINT).exists() or (folder / PREVIOUS).exists()


def versions() -> dict[str, Any]:
    """What the bits of a run depend on besides its settings."""
    threads, kernels = torch.get_num_threads(), native.fingerprint()
    return {"doxa": VERSION, "torch": torch.__version__, "threads": threads, "kernels": kernels}


def reserved(folder: Path | None) -> AbstractContextManager[None]:
    """Be the only one who writes checkpoints in a folder, if there is one; the second is told who was first."""
    if folder is None:
        return nullcontext()
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"checkpoint must be a folder, but {folder} is a file; choose another name")
    return folder_lock(folder)


class Checkpointer:
    """Where some work is kept, if it is: whole or not at all, after the units that are `is_due` and when it is
    finished.

    The last two checkpoints are kept, each found good before it becomes the newest: where the newest is damaged, the
    one before leads to the same bits. `settings`, one for all or one a member, must be the same where it goes on, but
    for those that are `changeable` on resuming; what `check_header` refuses is not even looked at.
    """

    def __init__(
        self,
        kind: str,
        noun: str,
        folder: str | PathLike[str] | None,
        settings: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        is_due: Callable[[int], bool],
        changeable: Sequence[str] = (),
        check_header: Callable[[Path, Mapping[str, Any]], None] = lambda path, header: None,
        show_values: bool = True,
        unsaved_note: str = ": this error's .belief holds what was learned",
    ) -> None:
        self.kind, self.noun, self.folder = kind, noun, None if folder is None else Path(folder)
        self.settings, self.is_due, self.changeable, self.check_header, self.show_values = (
            settings,
            is_due,
            changeable,
            check_header,
            show_values,
        )
        self.unsaved_note = unsaved_note
        self.saved_unit: int | None = None  # the unit that the newest file stands at
        self.has_warned = False  # that work was not good enough to be saved
        self.newest_is_good = False  # so that it is worth keeping when the next one is written

    @property
    def saved_in(self) -> Path | None:
        """The folder, once it holds a checkpoint."""
        return self.folder if self.folder is not None and has_checkpoint(self.folder) else None

    def save(self, work: Work) -> None:
        """Write the work as it stands to a file in the folder; what has diverged is not written, and Diverged."""
        assert self.folder is not None
        header, tensors = work.pack()
        common_header = {"settings": self.settings, "versions": versions()}
        keep_as = self.folder / PREVIOUS if self.newest_is_good else None
        sealed.write(self.folder / CHECKPOINT, self.kind, {**common_header, **header}, tensors, keep_as)
        self.saved_unit, self.newest_is_good = work.done, True

    def save_good(self, work: Work) -> None:
        """Save the work if it is good; if not, the files stay that were, and it is said once."""
        try:
            self.save(work)
        except Diverged as error:
            if not self.has_warned:
                older = f"what was saved before stays in {self.folder}" if self.saved_in else "nothing was saved yet"
                warnings.warn(f"not saved {work.position()}: {error}; {older}", stacklevel=3)
            self.has_warned = True

    def save_interrupted(self, work: Work) -> str:
        """Save what is there, and say where."""
        if self.folder is None:
            return f"; nothing was saved, since no checkpoint folder was given{self.unsaved_note}"
        if self.saved_unit != work.done:
            try:
                self.save(work)
            except (Diverged, BrokenFile) as error:
                why = f"for it has diverged: {error}" if isinstance(error, Diverged) else str(error)
                older = f"; {self.folder} holds what was saved before" if self.saved_in else ""
                return f"; it was not saved, {why}{older}"
        return f"; saved in {self.folder}. Go on with the same call and resume=True"

    def reopen(self, work: Work, resume: bool) -> None:
        """Start afresh, or where the newest file stands that is whole."""
        if self.folder is None:
            if resume:
                raise BadInput(f"resume=True needs the folder of the {self.noun} to go on with: pass checkpoint=")
            return
        if not has_checkpoint(self.folder):
            return
        if not resume:
            raise BadInput(
                f"{self.folder} already holds a {self.noun}; pass resume=True to go on with it, or choose another "
                "folder"
            )
        newest, *older = [path for name in (CHECKPOINT, PREVIOUS) if (path := self.folder / name).exists()]
        try:
            self._unpack(work, newest)
            self.newest_is_good = newest.name == CHECKPOINT
        except BrokenFile as error:
            # What is not damaged, and what a newer Doxa wrote, must not be passed over, nor written over.
            if not older or isinstance(error, NewerFile) or not os.access(newest, os.R_OK):
                raise
            try:
                self._unpack(work, older[0])
            except BrokenFile:
                raise error from None
            warnings.warn(
                f"{error}; going on from {older[0]}, the checkpoint before it, to the same bits", stacklevel=4
            )

    def _unpack(self, work: Work, path: Path) -> None:
        """Put the work to where a file stands."""
        header, tensors = sealed.read(path, self.kind)
        try:
            self.check_header(path, header)
            self._require_same_settings(path, header["settings"])
            work.unpack(header, tensors)
            saved_with = header["versions"]
        except (BadInput, BrokenFile):
            raise
        except Diverged as error:
            raise BrokenFile(f"{path} holds what has diverged, and cannot be gone on with: {error}") from error
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError, OverflowError) as error:
            raise BrokenFile(f"{path} was written by another version of Doxa ({error!r})") from error
        if saved_with != versions():
            warnings.warn(f"{path} was written by {saved_with}, this is {versions()}: bits may differ", stacklevel=5)
        self.saved_unit = work.done

    def _require_same_settings(self, path: Path, saved_settings: Any) -> None:
        """Refuse to go on with other settings than those saved; the fingerprint of the data is one of them."""
        saved, current = (
            [settings] if isinstance(settings, Mapping) else list(settings)
            for settings in (saved_settings, self.settings)
        )
        if len(saved) != len(current):
            raise BadInput(f"{path} belongs to a fleet of {len(saved)}, not of {len(current)}; use the same call")
        for member, (old, new) in enumerate(zip(saved, current, strict=True)):
            changed = [
                f"{k}: {old.get(k)} there, {v} here" if self.show_values else k
                for k, v in new.items()
                if k not in self.changeable and _renamed(old.get(k)) != describe(v)
            ]
            if changed:
                member_note = f"member {member} of " if len(saved) > 1 else ""
                raise BadInput(
                    f"{path} belongs to {member_note}a {self.noun} with other settings ({'; '.join(changed)}); "
                    "use the same call to go on"
                )


def _renamed(settings: Any) -> Any:
    """What an older file says of its settings, under the names that they have today."""
    if isinstance(settings, list):
        return [_renamed(value) for value in settings]
    if not isinstance(settings, Mapping):
        return settings
    if settings.get("is") == "Adam" and {"first", "second", "small"} <= settings.keys():
        return {"is": "Adam", "betas": [settings["first"], settings["second"]], "eps": settings["small"]}
    if settings.get("is") == "Noise" and "turn" in settings:
        return {"pullback" if name == "turn" else name: value for name, value in settings.items()}
    return {name: _renamed(value) for name, value in settings.items()}
