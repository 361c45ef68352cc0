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
    threads, kernels = torch.get_num_threads(), native.identity()
    return {"doxa": VERSION, "torch": torch.__version__, "threads": threads, "kernels": kernels}


class Checkpointer:
    """Where some work is kept, if it is: whole or not at all, after the units that are `due` and when it is finished.

    `settings`, one for all or one a member, must be the same where it goes on, but for those that are `free` to change;
    what `fits` refuses is not even looked at.
    """

    def __init__(
        self,
        kind: str,
        what: str,
        folder: str | PathLike[str] | None,
        settings: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        due: Callable[[int], bool],
        free: Sequence[str] = (),
        fits: Callable[[Path, Mapping[str, Any]], None] = lambda path, header: None,
        tells_values: bool = True,
        instead: str = ": this error's .belief holds what was learned",
    ) -> None:
        self.kind, self.what, self.folder = kind, what, None if folder is None else Path(folder)
        self.settings, self.due, self.free, self.fits, self.tells_values = settings, due, free, fits, tells_values
        self.instead = instead
        self.holds: int | None = None  # the unit that the file stands at

    @property
    def path(self) -> Path | None:
        return None if self.folder is None else self.folder / CHECKPOINT

    def save(self, work: Work) -> None:
        """Write the work as it stands to one file in the folder."""
        assert self.path is not None
        header, tensors = work.pack()
        told = {"settings": self.settings, "versions": versions()}
        sealed.write(self.path, self.kind, {**told, **header}, tensors)
        self.holds = work.done

    def interrupted(self, work: Work) -> str:
        """Save what is there, and say where."""
        if self.folder is None:
            return f"; nothing was saved, since no checkpoint folder was given{self.instead}"
        if self.holds != work.done:
            self.save(work)
        return f"; saved in {self.folder}. Go on with the same call and resume=True"

    def reopen(self, work: Work, resume: bool) -> None:
        """Start afresh, or where the file stands."""
        if self.folder is None:
            if resume:
                raise BadInput(f"resume=True needs the folder of the {self.what} to go on with: pass checkpoint=")
            return
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"checkpoint must be a folder, but {self.folder} is a file; choose another name")
        assert self.path is not None
        if not self.path.exists():
            return
        if not resume:
            raise BadInput(
                f"{self.folder} already holds a {self.what}; pass resume=True to go on with it, or choose another "
                "folder"
            )
        header, tensors = sealed.read(self.path, self.kind)
        try:
            self.fits(self.path, header)
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
        self.holds = work.done

    def _require_same_settings(self, given: Any) -> None:
        there, here = ([own] if isinstance(own, Mapping) else list(own) for own in (given, self.settings))
        if len(there) != len(here):
            raise BadInput(f"{self.path} belongs to a fleet of {len(there)}, not of {len(here)}; use the same call")
        for member, (old, new) in enumerate(zip(there, here, strict=True)):
            changed = [
                f"{k}: {old.get(k)} there, {v} here" if self.tells_values else k
                for k, v in new.items()
                if k not in self.free and old.get(k) != describe(v)
            ]
            if changed:
                who = f"member {member} of " if len(there) > 1 else ""
                raise BadInput(
                    f"{self.path} belongs to {who}a {self.what} with other settings ({'; '.join(changed)}); use the "
                    "same call to go on"
                )
