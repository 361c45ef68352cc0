"""A search as a file, and back: all that an exact resume needs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from doxa import checkpoint as files
from doxa.errors import BadInput, BrokenFile, Diverged, Interrupted
from doxa.resume import CHECKPOINT, versions
from doxa.search.ask_tell import Search
from doxa.search.engines.contract import EvaluationFailed
from doxa.search.gaussian import Gaussian
from doxa.search.importance_mixing import Memory

if TYPE_CHECKING:
    from doxa.search.under_way import UnderWay

OPTIMISER = "optimiser."


class File:
    """Where a search of some kind is kept, if it is; whole or not at all."""

    def __init__(
        self, kind: str, folder: str | PathLike[str] | None, settings: Mapping[str, Any], every: int, resume: bool
    ) -> None:
        self.kind, self.folder = kind, None if folder is None else Path(folder)
        self.settings, self.every, self.resume = dict(settings), every, resume
        self.holds: int | None = None  # the generation that the file stands at

    def reopen(self, under_way: UnderWay) -> None:
        """Start afresh, or where the file stands."""
        if self.folder is None:
            if self.resume:
                raise BadInput("resume=True needs the folder of the run to go on with: pass checkpoint=")
            return
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"checkpoint must be a folder, but {self.folder} is a file; choose another name")
        path = self.folder / CHECKPOINT
        if not path.exists():
            return
        if not self.resume:
            raise BadInput(
                f"{self.folder} already holds a run; pass resume=True to go on with it, or choose another folder"
            )
        header, tensors = files.read(path, self.kind)
        under_way.require_fit(path, header)
        self._require_same(path, header)
        try:
            restore(under_way.search, header, tensors)
            under_way.trajectory = header["trajectory"]
            under_way.load(header, tensors)
            self.holds = under_way.search.generation
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise BrokenFile(f"{path} was written by another version of Doxa ({error!r})") from error

    def _require_same(self, path: Path, header: Mapping[str, Any]) -> None:
        there = header["settings"]
        changed = [f"{k}: {there.get(k)} there, {v} here" for k, v in self.settings.items() if there.get(k) != v]
        if changed:
            raise BadInput(
                f"{path} belongs to a run with other settings ({'; '.join(changed)}); use the same call to go on"
            )
        if header["versions"] != versions():
            warnings.warn(
                f"{path} was written by {header['versions']}, this is {versions()}: bits may differ", stacklevel=5
            )

    def after(self, under_way: UnderWay, last: bool) -> None:
        """Save what a generation came to, if it is its turn."""
        if self.folder is not None and (under_way.search.generation % self.every == 0 or last):
            self.save(under_way)

    def save(self, under_way: UnderWay) -> None:
        assert self.folder is not None
        (header, tensors), (own, more) = packed(under_way.search), under_way.state()
        told = {"settings": self.settings, "versions": versions(), "trajectory": under_way.trajectory}
        files.write(self.folder / CHECKPOINT, self.kind, {**told, **header, **own}, {**tensors, **more})
        self.holds = under_way.search.generation

    def broken_off(self, under_way: UnderWay, error: Exception) -> Exception:
        """The error that ended a generation, with what had been found before it, which is kept."""
        done = under_way.search.generation
        words = f"{done} of {under_way.generations} generations were done before"
        if self.folder is not None and done > 0:
            if self.holds != done:
                self.save(under_way)
            words += f", and are kept in {self.folder}: the same call and resume=True goes on from there"
        words += "; this error's .found holds what they came to"
        if not isinstance(error, Diverged | EvaluationFailed):  # the objective's own, in this process
            with suppress(AttributeError):  # some errors take no attribute
                error.found = under_way.found()  # type: ignore[attr-defined]
            error.add_note(words)
            return error
        return type(error)(f"{error}. {words}", found=under_way.found()).with_traceback(error.__traceback__)

    def interrupted(self, under_way: UnderWay) -> Interrupted:
        """What is said, and kept, when a search is stopped by hand."""
        words = f"stopped after generation {under_way.search.generation} of {under_way.generations}"
        if self.folder is None:
            words += (
                "; nothing was saved, since no checkpoint folder was given: this error's .belief holds what was found"
            )
        else:
            self.save(under_way)
            words += f"; saved in {self.folder}. Go on with the same call and resume=True"
        return Interrupted(words, under_way.found())


def packed(search: Search) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A search's state as numbers and tensors."""
    state, numbers = search.state(), dict[str, Any]()
    tensors: dict[str, Tensor] = {"mean": state["mean"], "coordinate": state["coordinate"]}
    for index, own in state["optimiser"]["state"].items():
        for name, value in own.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{OPTIMISER}{index}.{name}"] = value
    if search.larger is not None:
        tensors["larger"] = search.larger
    if search.memory is not None:
        old = search.memory
        tensors |= {"old.mean": old.at.mean, "old.scale": old.at.scale}
        tensors |= {"old.points": old.points, "old.values": old.values}
    return {"generation": search.generation, "rate": search.rate, "optimiser": numbers}, tensors


def restore(search: Search, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Put a search to where it was packed."""
    here = {k: t.to(search.mean) for k, t in tensors.items() if k.startswith("old.") or k == "larger"}
    states: dict[int, dict[str, Any]] = {}
    for name, value in (*tensors.items(), *header["optimiser"].items()):
        if name.startswith(OPTIMISER):
            index, _, part = name.removeprefix(OPTIMISER).partition(".")
            states.setdefault(int(index), {})[part] = value
    optimiser = {**search.optimiser.state_dict(), "state": states}
    optimiser["param_groups"][1]["lr"] = header["rate"]
    memory = None
    if "old.points" in here:
        at = Gaussian(here["old.mean"], here["old.scale"], search.groups)
        memory = Memory(at, here["old.points"], here["old.values"])
    search.load(
        {
            "mean": tensors["mean"],
            "coordinate": tensors["coordinate"],
            "generation": header["generation"],
            "optimiser": optimiser,
            "memory": memory,
            "larger": here.get("larger"),
        }
    )
