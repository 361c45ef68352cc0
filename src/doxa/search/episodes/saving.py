"""A search for a policy as a file, and back: all that an exact resume needs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from doxa import checkpoint as files
from doxa.errors import BadInput, BrokenFile
from doxa.resume import CHECKPOINT, versions
from doxa.search.episodes.result import Weights
from doxa.search.episodes.sight import Sight

if TYPE_CHECKING:
    from doxa.search.episodes.pursuit import Pursuit

STATE = "doxa.policy_search"
OPTIMISER = "optimiser."


def save(pursuit: Pursuit) -> None:
    """Write the search as it stands to one file in its folder."""
    assert pursuit.folder is not None
    state, best = pursuit.search.state(), pursuit.best
    tensors: dict[str, Tensor] = {"mean": state["mean"], "coordinate": state["coordinate"]}
    numbers: dict[str, Any] = {}
    for index, own in state["optimiser"]["state"].items():
        for name, value in own.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{OPTIMISER}{index}.{name}"] = value
    if best is not None:
        tensors["best"] = best.flat
    counts = {}
    for name, sight in (("sight", pursuit.sight), ("best", None if best is None else best.sight)):
        if sight is not None:
            tensors |= {f"{name}.mean": sight.mean, f"{name}.squares": sight.squares}
            counts[name] = sight.count
    header = {
        "settings": pursuit.settings,
        "versions": versions(),
        "layout": files.encode_layout(pursuit.body.layout),
        "generation": pursuit.done,
        "trajectory": pursuit.trajectory,
        "highest": None if best is None else pursuit.highest,
        "solved": pursuit.solved,
        "counts": counts,
        "optimiser": numbers,
    }
    files.write(pursuit.folder / CHECKPOINT, STATE, header, tensors)


def reopen(pursuit: Pursuit, resume: bool) -> None:
    """Start afresh, or where the file in the search's folder stands."""
    folder = pursuit.folder
    if folder is None:
        if resume:
            raise BadInput("resume=True needs the folder of the run to go on with: pass checkpoint=")
        return
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"checkpoint must be a folder, but {folder} is a file; choose another name")
    path = folder / CHECKPOINT
    if not path.exists():
        return
    if not resume:
        raise BadInput(f"{folder} already holds a run; pass resume=True to go on with it, or choose another folder")
    header, tensors = files.read(path, STATE)
    _require_same(pursuit, path, header)
    try:
        _load(pursuit, header, tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BrokenFile(f"{path} was written by another version of Doxa ({error!r})") from error


def _require_same(pursuit: Pursuit, path: Path, header: dict[str, Any]) -> None:
    body, there = pursuit.body, header["settings"]
    files.require_same_net(path, files.decode_layout(header["layout"]), body.buffers, body.net)
    changed = [f"{k}: {there.get(k)} there, {v} here" for k, v in pursuit.settings.items() if there.get(k) != v]
    if changed:
        raise BadInput(
            f"{path} belongs to a run with other settings ({'; '.join(changed)}); use the same call to go on"
        )
    if header["versions"] != versions():
        warnings.warn(
            f"{path} was written by {header['versions']}, this is {versions()}: bits may differ", stacklevel=4
        )


def _load(pursuit: Pursuit, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    search = pursuit.search
    states: dict[int, dict[str, Any]] = {}
    for name, value in (*tensors.items(), *header["optimiser"].items()):
        if name.startswith(OPTIMISER):
            index, _, part = name.removeprefix(OPTIMISER).partition(".")
            states.setdefault(int(index), {})[part] = value
    optimiser = {**search.optimiser.state_dict(), "state": states}
    own = {"generation": header["generation"], "optimiser": optimiser, "memory": None, "larger": None}
    search.load({**tensors, **own})
    sights = {
        name: Sight(count, tensors[f"{name}.mean"], tensors[f"{name}.squares"])
        for name, count in header["counts"].items()
    }
    pursuit.sight = sights.get("sight")
    pursuit.trajectory, pursuit.solved = header["trajectory"], header["solved"]
    if "best" in tensors:
        pursuit.best = Weights(tensors["best"].to(search.mean), sights.get("best"))
        pursuit.highest = header["highest"]
