"""A run as a file, and back: all that an exact resume needs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from doxa import checkpoint as files
from doxa import native
from doxa.errors import BadInput, BrokenFile
from doxa.optimisers.torchs import TorchAtWork
from doxa.version import VERSION

if TYPE_CHECKING:
    from doxa.run import Run

STATE = "doxa.training"
CHECKPOINT, BELIEF = "checkpoint.doxa", "belief.doxa"


def versions() -> dict[str, Any]:
    """What a run's bits depend on besides its settings."""
    threads, kernels = torch.get_num_threads(), native.identity()
    return {"doxa": VERSION, "torch": torch.__version__, "threads": threads, "kernels": kernels}


def save(run: Run) -> None:
    """Write the run as it stands to one file in its folder."""
    assert run.folder is not None
    header = {
        "settings": list(run.settings),
        "versions": versions(),
        "layout": files.encode_layout(run.problem.layout),
        "done": run.done,
        "histories": run.histories,
        "best_epochs": run.best_epochs,
        "troubles": {str(k): what for k, what in run.troubles.items()},
        "optimiser": run.optimiser.numbers() if isinstance(run.optimiser, TorchAtWork) else {},
    }
    tensors = {f"training.{k}": t for k, t in run.training.state().items()}
    tensors |= {f"best.{k}": t for k, t in run.best.items()}
    tensors |= {f"optimiser.{k}": t for k, t in run.optimiser.state().items()}
    tensors["running"] = run.running
    files.write(run.folder / CHECKPOINT, STATE, header, tensors)


def reopen(run: Run, resume: bool) -> None:
    """Start afresh, or where the checkpoint in the run's folder stands."""
    if run.folder is not None and run.folder.exists() and not run.folder.is_dir():
        raise BadInput(f"checkpoint must be a folder, but {run.folder} is a file; choose another name")
    path = None if run.folder is None else run.folder / CHECKPOINT
    if path is None:
        if resume:
            raise BadInput("resume=True needs the folder of the run to go on with: pass checkpoint=")
        return
    if not path.exists():
        return
    if not resume:
        raise BadInput(f"{run.folder} already holds a run; pass resume=True to go on with it, or choose another folder")
    header, tensors = files.read(path, STATE)
    buffers = {k: b[0] for k, b in run.problem.buffers.items()}
    files.require_same_net(path, files.decode_layout(header["layout"]), buffers, run.problem.net)
    if files.decode_layout(header["layout"]) != run.problem.layout:
        raise BadInput(
            f"{path} belongs to a run in which other weights were random or frozen; use the same call to go on"
        )
    _require_same_settings(run, path, header["settings"])
    if header["versions"] != versions():
        warnings.warn(
            f"{path} was written by {header['versions']}, this is {versions()}: bits may differ",
            stacklevel=3,
        )
    run.done, run.histories, run.best_epochs = header["done"], header["histories"], header["best_epochs"]
    run.troubles = {int(k): what for k, what in header["troubles"].items()}
    restore(run.training.state(), "training.", tensors)
    device = run.problem.start.device
    run.best = {k.removeprefix("best."): t.to(device) for k, t in tensors.items() if k.startswith("best.")}
    run.running.copy_(tensors["running"])
    if isinstance(run.optimiser, TorchAtWork):
        own = {k.removeprefix("optimiser."): t for k, t in tensors.items() if k.startswith("optimiser.")}
        run.optimiser.load(own, header["optimiser"])
    else:
        restore(run.optimiser.state(), "optimiser.", tensors)


@torch.no_grad()
def restore(into: Mapping[str, Tensor], prefix: str, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors back to where they were taken from."""
    for name, tensor in into.items():
        if prefix + name not in tensors:
            raise BrokenFile(f"the checkpoint has no {name!r}: it was written by another learner or optimiser")
        tensor.copy_(tensors[prefix + name])


def _require_same_settings(run: Run, path: Path, there: list[dict[str, Any]]) -> None:
    if len(there) != len(run.settings):
        raise BadInput(f"{path} belongs to a fleet of {len(there)}, not of {len(run.settings)}; use the same call")
    for member, (old, new) in enumerate(zip(there, run.settings, strict=True)):
        changed = [
            f"{k}: {old.get(k)} there, {v} here"
            for k, v in new.items()
            if k != "epochs" and old.get(k) != files.describe(v)
        ]
        if changed:
            who = f"member {member} of " if len(there) > 1 else ""
            raise BadInput(
                f"{path} belongs to {who}a run with other settings ({'; '.join(changed)}); use the same call to go on"
            )
