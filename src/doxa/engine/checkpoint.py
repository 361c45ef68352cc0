"""Work as a file, and back: all that an exact resume needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from doxa import kernels as native
from doxa.errors import BadInput, BrokenFile
from doxa.storage import sealed
from doxa.storage.describe import describe
from doxa.version import VERSION

if TYPE_CHECKING:
    from doxa.engine.driver import Work

CHECKPOINT, BELIEF = "checkpoint.doxa", "belief.doxa"


def versions() -> dict[str, Any]:
    """What the bits of a run depend on besides its settings."""
    threads, kernels = torch.get_num_threads(), native.fingerprint()
    return {"doxa": VERSION, "torch": torch.__version__, "threads": threads, "kernels": kernels}


class Checkpointer:
    """Where some work is kept, if it is: whole or not at all, after the units that are `is_due` and when it is
    finished.

    `settings`, one for all or one a member, must be the same where it goes on, but for those that are `changeable` on
    resuming; what `check_header` refuses is not even looked at.
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
        self.saved_unit: int | None = None  # the unit that the file stands at

    @property
    def path(self) -> Path | None:
        return None if self.folder is None else self.folder / CHECKPOINT

    @property
    def saved_in(self) -> Path | None:
        """The folder, once it holds a checkpoint."""
        return self.folder if self.path is not None and self.path.exists() else None

    def save(self, work: Work) -> None:
        """Write the work as it stands to one file in the folder."""
        assert self.path is not None
        header, tensors = work.pack()
        common_header = {"settings": self.settings, "versions": versions()}
        sealed.write(self.path, self.kind, {**common_header, **header}, tensors)
        self.saved_unit = work.done

    def save_interrupted(self, work: Work) -> str:
        """Save what is there, and say where."""
        if self.folder is None:
            return f"; nothing was saved, since no checkpoint folder was given{self.unsaved_note}"
        if self.saved_unit != work.done:
            self.save(work)
        return f"; saved in {self.folder}. Go on with the same call and resume=True"

    def reopen(self, work: Work, resume: bool) -> None:
        """Start afresh, or where the file stands."""
        if self.folder is None:
            if resume:
                raise BadInput(f"resume=True needs the folder of the {self.noun} to go on with: pass checkpoint=")
            return
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"checkpoint must be a folder, but {self.folder} is a file; choose another name")
        assert self.path is not None
        if not self.path.exists():
            return
        if not resume:
            raise BadInput(
                f"{self.folder} already holds a {self.noun}; pass resume=True to go on with it, or choose another "
                "folder"
            )
        header, tensors = sealed.read(self.path, self.kind)
        try:
            self.check_header(self.path, header)
            self._require_same_settings(header["settings"])
            work.unpack(header, tensors)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            if isinstance(error, BadInput):
                raise
            raise BrokenFile(f"{self.path} was written by another version of Doxa ({error!r})") from error
        if header["versions"] != versions():
            warnings.warn(
                f"{self.path} was written by {header['versions']}, this is {versions()}: bits may differ", stacklevel=4
            )
        self.saved_unit = work.done

    def _require_same_settings(self, saved_settings: Any) -> None:
        """Refuse to go on with other settings than those saved; the fingerprint of the data is one of them."""
        saved, current = (
            [settings] if isinstance(settings, Mapping) else list(settings)
            for settings in (saved_settings, self.settings)
        )
        if len(saved) != len(current):
            raise BadInput(f"{self.path} belongs to a fleet of {len(saved)}, not of {len(current)}; use the same call")
        for member, (old, new) in enumerate(zip(saved, current, strict=True)):
            changed = [
                f"{k}: {old.get(k)} there, {v} here" if self.show_values else k
                for k, v in new.items()
                if k not in self.changeable and _renamed(old.get(k)) != describe(v)
            ]
            if changed:
                member_note = f"member {member} of " if len(saved) > 1 else ""
                raise BadInput(
                    f"{self.path} belongs to {member_note}a {self.noun} with other settings ({'; '.join(changed)}); "
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
