"""A search over a vector as a file, and back: all that an exact resume needs."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from doxa import checkpoint as files
from doxa.errors import BadInput, Interrupted
from doxa.search.gaussian import Gaussian
from doxa.search.importance_mixing import Memory

if TYPE_CHECKING:
    from doxa.search.minimise import Minimising

STATE, NAME = "doxa.search", "search.doxa"


class File:
    """Where a search is kept, if it is; whole or not at all."""

    def __init__(
        self, folder: str | PathLike[str] | None, settings: Mapping[str, Any], every: int, resume: bool
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.settings, self.every, self.resume = dict(settings), every, resume

    def reopen(self, under_way: Minimising) -> None:
        """Start afresh, or where the file stands."""
        if self.folder is None:
            if self.resume:
                raise BadInput("resume=True needs the folder of the search to go on with: pass checkpoint=")
            return
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"checkpoint must be a folder, but {self.folder} is a file; choose another name")
        path = self.folder / NAME
        if not path.exists():
            return
        if not self.resume:
            raise BadInput(
                f"{self.folder} already holds a search; pass resume=True to go on with it, or choose another folder"
            )
        header, tensors = files.read(path, STATE)
        changed = [
            f"{k}: {header['settings'].get(k)} there, {v} here"
            for k, v in self.settings.items()
            if header["settings"].get(k) != v
        ]
        if changed:
            raise BadInput(
                f"{path} belongs to a search with other settings ({'; '.join(changed)}); use the same call to go on"
            )
        _load(under_way, header, tensors)

    def after(self, under_way: Minimising) -> None:
        """Save what a generation came to, if it is its turn."""
        last = under_way.done or under_way.search.generation == under_way.generations
        if self.folder is not None and (under_way.search.generation % self.every == 0 or last):
            self.save(under_way)

    def save(self, under_way: Minimising) -> None:
        assert self.folder is not None
        search = under_way.search
        state = search.optimiser.state_dict()["state"]
        header = {
            "settings": self.settings,
            "generation": search.generation,
            "lowest": under_way.lowest,
            "flat": under_way.flat,
            "rate": search.rate,
            "trajectory": under_way.trajectory,
            "optimiser": {
                f"{i}.{k}": v for i, own in state.items() for k, v in own.items() if not isinstance(v, Tensor)
            },
        }
        tensors = {"mean": search.mean, "coordinate": search.coordinate, "best": under_way.best}
        tensors |= {
            f"optimiser.{i}.{k}": v for i, own in state.items() for k, v in own.items() if isinstance(v, Tensor)
        }
        if search.larger is not None:
            tensors["larger"] = search.larger
        if search.memory is not None:
            old = search.memory
            tensors |= {"old.mean": old.at.mean, "old.scale": old.at.scale}
            tensors |= {"old.points": old.points, "old.values": old.values}
        if under_way.remembers:
            tensors["path"] = torch.stack(under_way.path)
        files.write(self.folder / NAME, STATE, header, tensors)

    def interrupted(self, under_way: Minimising) -> Interrupted:
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


def _load(under_way: Minimising, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    search = under_way.search
    search.mean.copy_(tensors["mean"])
    search.coordinate.copy_(tensors["coordinate"])
    search.generation = header["generation"]
    under_way.best, under_way.lowest, under_way.flat = tensors["best"].clone(), header["lowest"], header["flat"]
    under_way.trajectory = header["trajectory"]
    if "path" in tensors and under_way.remembers:
        under_way.path = list(tensors["path"].clone())
    state: dict[int, dict[str, Any]] = {}
    named = {k.removeprefix("optimiser."): v for k, v in tensors.items() if k.startswith("optimiser.")}
    for name, value in (*named.items(), *header["optimiser"].items()):
        number, _, field = name.partition(".")
        state.setdefault(int(number), {})[field] = value
    if "larger" in tensors:
        search.larger = tensors["larger"].clone()
    if "old.points" in tensors:
        at = Gaussian(tensors["old.mean"].clone(), tensors["old.scale"].clone(), search.groups)
        search.recall(Memory(at, tensors["old.points"].clone(), tensors["old.values"].clone()))
    search.optimiser.load_state_dict({**search.optimiser.state_dict(), "state": state})
    search.optimiser.param_groups[1]["lr"] = header["rate"]
