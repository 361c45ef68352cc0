"""A run on disk: what was asked, what was learned, and all that its use needs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from doxa.errors import BadInput, BrokenFile, shorten
from doxa.nets.rescaled import Rescaled
from doxa.predict.belief import Belief, load
from doxa.results import read_result, result_bytes
from doxa.runs.manifest import (
    BELIEF,
    MANIFEST,
    MEND,
    PARTS,
    PREDICTING,
    RESULT,
    RUN,
    TABLE,
    DamagedRun,
    Manifest,
    read_manifest,
    replace_part,
    require_whole_run,
    write_bytes,
)
from doxa.runs.parsing import split_call
from doxa.runs.plan import Plan, build_net
from doxa.runs.spec import spec_problem
from doxa.storage import sealed
from doxa.storage.json_text import SEAL, has_seal, parse_json, read_bounded, to_sealed_bytes
from doxa.storage.lock import folder_lock
from doxa.tables import Familiarity, Preparation

KIND, VERSION = "doxa run", 2
UNSEALED = 1  # the version of runs without a manifest


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
        return _read_result(self.folder, (RUN, RESULT))


def spec_bytes(spec: dict[str, Any]) -> bytes:
    """The words of a run as the file that holds them, with a seal."""
    return to_sealed_bytes({**spec, "kind": KIND, "version": VERSION})


def write_spec(folder: Path, spec: dict[str, Any]) -> None:
    """The words of a run, as JSON, whole or not at all."""
    write_bytes(folder / RUN, spec_bytes(spec))


def read_spec(folder: str | PathLike[str]) -> dict[str, Any]:
    """The words of a run, or an error that says what the folder is instead."""
    folder = Path(folder)
    if "\0" in str(folder):
        raise BadInput(f"no folder has a name like {str(folder)!r}: it holds the character NUL")
    if not folder.exists():
        raise BadInput(f"there is no run {folder}; `doxa fit … --out {folder}` makes one")
    if not folder.is_dir():
        raise BadInput(f"{folder} is a file; a run is the folder that `doxa fit … --out FOLDER` wrote")
    path = folder / RUN
    if not path.exists() and (folder / MANIFEST).exists():
        raise DamagedRun(f"{path} is missing; {MEND}")
    if not path.is_file():
        raise BadInput(f"{folder} holds no run: there is no {RUN} in it; `doxa fit … --out {folder}` makes one")
    raw = read_bounded(path)
    try:
        spec = parse_json(raw)
    except ValueError as error:
        raise DamagedRun(f"{path} is damaged, cut short, or no JSON ({shorten(str(error))}); {MEND}") from None
    if not isinstance(spec, dict) or spec.get("kind") != KIND:
        raise DamagedRun(f"{path} is not the description of a Doxa run; {MEND}")
    version = spec.get("version")
    if isinstance(version, int) and version > VERSION:
        raise BrokenFile(f"{path} has version {shorten(str(version))}; this Doxa reads up to {VERSION}: upgrade Doxa")
    if version not in (UNSEALED, VERSION) or isinstance(version, bool):
        raise DamagedRun(f"{path} has a version that Doxa never writes; {MEND}")
    if (version == VERSION or SEAL in spec) and not has_seal(raw):
        raise DamagedRun(f"{path} is damaged: it does not match its seal; {MEND}")
    problem = spec_problem(spec)
    if problem is not None:
        raise DamagedRun(f"{path} makes no sense: {problem}; {MEND}")
    return {name: value for name, value in spec.items() if name != SEAL}


def read_finished_spec(
    folder: str | PathLike[str], parts: Sequence[str] = PARTS
) -> tuple[dict[str, Any], Manifest | None]:
    """The words of a finished run whose `parts` are as its manifest has them; one still being written is an error."""
    folder = Path(folder)
    spec = read_spec(folder)
    if spec["status"] != "finished":
        raise BadInput(
            f"{folder} is still being written, or was interrupted: wait for it, or go on with "
            f"`doxa fit` and the same arguments with --resume"
        )
    manifest = read_manifest(folder)
    if manifest is not None:
        manifest = require_whole_run(folder, manifest, parts)
    elif spec["version"] > UNSEALED:
        raise DamagedRun(
            f"{folder / MANIFEST} is missing: it was removed, or the run was interrupted as it was finished; {MEND}"
        )
    else:
        _require_complete(folder, spec)
    return spec, manifest


def _require_complete(folder: Path, spec: dict[str, Any]) -> None:
    """Of a run without a manifest, refuse one that lacks what its words say that it has."""
    needed = (BELIEF,) if spec["preparation"] is None else (BELIEF, TABLE)
    for name in needed:
        if not (folder / name).is_file():
            raise DamagedRun(f"{folder / name} is missing; {MEND}")


def read_run_result(folder: str | PathLike[str]) -> dict[str, Any]:
    """What a finished run was judged to be worth, without opening its belief."""
    return _read_result(Path(folder), PARTS)


def _read_result(folder: Path, parts: Sequence[str]) -> dict[str, Any]:
    read_finished_spec(folder, parts)
    if not (folder / RESULT).exists():
        raise BadInput(
            f"{folder} was never judged: `doxa judge {folder} TABLE` does it, on a table with its target, and keeps "
            f"the result"
        )
    return read_result(folder / RESULT)


def keep_result(folder: str | PathLike[str], result: dict[str, Any]) -> Path:
    """Store what a finished run was judged to be worth in it; the path."""
    path = Path(folder) / RESULT
    with folder_lock(path.parent):
        replace_part(path.parent, RESULT, result_bytes(result, path))
    return path


def was_judged(folder: str | PathLike[str]) -> bool:
    """Whether a run has a result, or had one that is missing."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    return (folder / RESULT).exists() or (manifest is not None and None not in manifest.files.get(RESULT, (None,)))


def open_run(folder: str | PathLike[str], device: str | None = None) -> SavedRun:
    """A finished run, its belief and all that its use needs, which is verified first; a damaged result is warned of."""
    folder = Path(folder)
    saved_run, manifest = _open(folder, device, PREDICTING)
    if manifest is not None:
        try:
            require_whole_run(folder, manifest, [RESULT])
        except BrokenFile as error:
            warnings.warn(f"{error.args[0]}. No prediction depends on it; who reads it is refused", stacklevel=2)
    return saved_run


def open_whole_run(folder: str | PathLike[str], device: str | None = None) -> SavedRun:
    """A finished run, all of whose parts are as they were sealed, its result too."""
    return _open(Path(folder), device, PARTS)[0]


def _open(folder: Path, device: str | None, parts: Sequence[str]) -> tuple[SavedRun, Manifest | None]:
    spec, manifest = read_finished_spec(folder, [name for name in parts if name != BELIEF])
    if manifest is None:
        return _open_unsealed(folder, spec, device), None
    digest = manifest.digest(BELIEF)
    if digest is None:
        require_whole_run(folder, manifest, [BELIEF])
    try:
        # So that a large file is read and hashed only once.
        return open_verified(folder, spec, device, None if digest is None else digest.sha256), manifest
    except BrokenFile:
        require_whole_run(folder, manifest, parts)
        raise


def _open_unsealed(folder: Path, spec: dict[str, Any], device: str | None) -> SavedRun:
    warnings.warn(
        f"{folder} is not sealed, since an older Doxa wrote it: damage to it may go unseen; `doxa runs seal {folder}` "
        "seals it as it is",
        stacklevel=4,
    )
    try:
        return open_verified(folder, spec, device)
    except BrokenFile as error:
        if not os.access(folder / BELIEF, os.R_OK):
            raise
        raise DamagedRun(f"{error.args[0]}; {MEND}") from None


def open_verified(folder: Path, spec: dict[str, Any], device: str | None, sha256: str | None = None) -> SavedRun:
    """A run from files that were verified, or cannot be; no more memory is taken than they have bytes.

    The belief's file is verified as it is loaded, where its `sha256` is given.
    """
    preparation = None if spec["preparation"] is None else Preparation.from_state(spec["preparation"])
    belief = open_belief(folder, spec, device, sha256)
    return SavedRun(folder, spec, belief, preparation, _read_familiarity(folder, spec))


def open_belief(folder: Path, spec: dict[str, Any], device: str | None = None, sha256: str | None = None) -> Belief:
    """What was learned, of a run with these words."""
    outline = _build_outline(folder, spec)
    target = "cpu" if device is None else device
    try:
        belief = load(folder / BELIEF, outline, target, sha256)
        net = build_spec_net(spec)
        return replace(belief, net=net if device is None else net.to(device))
    except BadInput as error:
        raise DamagedRun(f"{folder / RUN} and {BELIEF} do not fit each other: {error}") from None
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device={device!r} cannot be used here: {shorten(str(error))}") from None


def build_spec_net(spec: dict[str, Any]) -> nn.Module:
    """The net that the words of a run describe; its weights are the belief's, and those that it has are zero."""
    if not _is_own(spec):
        return _rescaled(build_net(spec["plan"]["net"], spec["shape"], spec["outputs"]), spec)
    with torch.device("meta"):
        net = build_net(spec["plan"]["net"], spec["shape"], spec["outputs"])
    net.to_empty(device="cpu")
    with torch.no_grad():
        for tensor in (*net.parameters(), *net.buffers()):
            tensor.zero_()
    return _rescaled(net, spec)


def _is_own(spec: dict[str, Any]) -> bool:
    """Whether a net is one of Doxa's, which can be laid out without memory; another is built as its function does."""
    return split_call(str(spec["plan"].get("net")))[0] in ("mlp", "lenet5")


def _rescaled(net: nn.Module, spec: dict[str, Any]) -> nn.Module:
    return net if spec["classes"] else Rescaled(net, *spec["units"])


def _build_outline(folder: Path, spec: dict[str, Any]) -> nn.Module:
    """The run's net without memory for its weights, to compare with those that there are."""
    try:
        plan = Plan.from_settings(spec["plan"])
        with torch.device("meta"):
            net = build_net(plan.net, spec["shape"], spec["outputs"])
        return _rescaled(net, spec)
    except BadInput as error:
        raise BadInput(f"{folder / RUN}: {shorten(str(error), 300)}") from None
    except (TypeError, ValueError, RuntimeError, OverflowError, MemoryError) as error:
        if _is_own(spec):
            raise DamagedRun(f"{folder / RUN} has a plan that makes no net ({shorten(repr(error))}); {MEND}") from None
        return build_spec_net(spec)  # a net of the user's own, which cannot be built without memory


def _read_familiarity(folder: Path, spec: dict[str, Any]) -> Familiarity | None:
    if not (folder / TABLE).exists():
        return None
    _, tensors = sealed.read(folder / TABLE, "doxa.table")
    try:
        familiarity = Familiarity.from_state({k: np.asarray(t) for k, t in tensors.items()})
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedRun(f"{folder / TABLE} makes no sense ({shorten(repr(error))}); {MEND}") from None
    columns = spec["shape"][0]
    bounds = {np.shape(familiarity.low), np.shape(familiarity.high)}
    is_fit = (familiarity.centre.shape, familiarity.root.shape) == ((columns,), (columns, columns))
    if not is_fit or not bounds <= {(), (columns,)}:
        raise DamagedRun(f"{folder / TABLE} does not fit the {columns} columns of {RUN}; {MEND}")
    return familiarity


def write_familiarity(folder: Path, familiarity: Familiarity) -> None:
    """Beside the belief: what the training rows looked like."""
    tensors = {k: torch.from_numpy(np.ascontiguousarray(a)) for k, a in familiarity.state().items()}
    sealed.write(folder / TABLE, "doxa.table", {}, tensors)
