"""A run on disk: what was asked, what was learned, and all that its use needs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa.errors import BadInput, BrokenFile, shorten
from doxa.nets.rescaled import Rescaled
from doxa.predict.belief import Belief, load
from doxa.results import read_result
from doxa.results.files import write_text_atomic
from doxa.runs.plan import Plan, build_net
from doxa.storage import sealed
from doxa.tables import Familiarity, Preparation

RUN, BELIEF, TABLE, RESULT = "run.json", "belief.doxa", "table.doxa", "result.json"
KIND, VERSION = "doxa run", 1


@dataclass(frozen=True)
class SavedRun:
    """A finished run, ready for use."""

    folder: Path
    spec: dict[str, Any]
    belief: Belief
    preparation: Preparation | None
    familiarity: Familiarity | None

    @property
    def plan(self) -> Plan:
        return Plan.from_settings(self.spec["plan"])

    @property
    def task(self) -> str:
        return str(self.spec["task"])

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.spec["classes"])

    @property
    def has_binary_output(self) -> bool:
        """Whether the net has one output for two classes."""
        return len(self.classes) == 2 and int(self.spec["outputs"]) == 1

    @property
    def levels(self) -> Tensor | None:
        levels = self.spec.get("levels")
        return None if levels is None else torch.tensor(levels, dtype=torch.float64)

    def result(self) -> dict[str, Any]:
        """What the run was judged to be worth on the rows held out."""
        return read_run_result(self.folder)


def write_spec(folder: Path, spec: dict[str, Any]) -> None:
    """The words of a run, as JSON, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"kind": KIND, "version": VERSION, **spec}, indent=1, ensure_ascii=False)
    write_text_atomic(folder / RUN, text + "\n")


def read_spec(folder: str | PathLike[str]) -> dict[str, Any]:
    """The words of a run, or an error that says what the folder is instead."""
    folder = Path(folder)
    if not folder.exists():
        raise BadInput(f"there is no run {folder}; `doxa fit … --out {folder}` makes one")
    if not folder.is_dir():
        raise BadInput(f"{folder} is a file; a run is the folder that `doxa fit … --out FOLDER` wrote")
    path = folder / RUN
    if not path.is_file():
        raise BadInput(f"{folder} holds no run: there is no {RUN} in it; `doxa fit … --out {folder}` makes one")
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenFile(f"{path} cannot be read ({shorten(str(error))}); restore it from a copy") from None
    if not isinstance(spec, dict) or spec.get("kind") != KIND:
        raise BrokenFile(f"{path} is not the description of a Doxa run")
    if spec.get("version", 0) > VERSION:
        raise BrokenFile(f"{path} has version {spec['version']}; this Doxa reads up to {VERSION}: upgrade Doxa")
    return spec


def read_finished_spec(folder: str | PathLike[str]) -> dict[str, Any]:
    """The words of a finished run; one that is still being written is an error."""
    folder = Path(folder)
    spec = read_spec(folder)
    if spec.get("status") != "finished" or not (folder / BELIEF).is_file():
        raise BadInput(
            f"{folder} is still being written, or was interrupted: wait for it, or go on with "
            f"`doxa fit` and the same arguments with --resume"
        )
    return spec


def read_run_result(folder: str | PathLike[str]) -> dict[str, Any]:
    """What a finished run was judged to be worth, without opening its belief."""
    folder = Path(folder)
    read_finished_spec(folder)
    if not (folder / RESULT).exists():
        raise BadInput(
            f"{folder} was never judged: `doxa judge {folder} TABLE` does it, on a table with its target, and keeps "
            f"the result"
        )
    return read_result(folder / RESULT)


def open_run(folder: str | PathLike[str], device: str | None = None) -> SavedRun:
    """A finished run, its belief and all that its use needs."""
    folder = Path(folder)
    spec = read_finished_spec(folder)
    try:
        net = build_net(spec["plan"]["net"], spec["shape"], spec["outputs"])
        net = net if spec["classes"] else Rescaled(net, *spec["units"])
        preparation = None if spec["preparation"] is None else Preparation.from_state(spec["preparation"])
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenFile(f"{folder / RUN} makes no sense ({error!r}); restore it from a copy") from None
    familiarity = None
    if (folder / TABLE).exists():
        _, tensors = sealed.read(folder / TABLE, "doxa.table")
        familiarity = Familiarity.from_state({k: np.asarray(t) for k, t in tensors.items()})
    try:
        belief = load(folder / BELIEF, net if device is None else net.to(device), device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device={device!r} cannot be used here: {shorten(str(error))}") from None
    return SavedRun(folder, spec, belief, preparation, familiarity)


def write_familiarity(folder: Path, familiarity: Familiarity) -> None:
    """Beside the belief: what the training rows looked like."""
    tensors = {k: torch.from_numpy(np.ascontiguousarray(a)) for k, a in familiarity.state().items()}
    sealed.write(folder / TABLE, "doxa.table", {}, tensors)
