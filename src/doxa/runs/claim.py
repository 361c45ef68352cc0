"""Whose a folder is: empty, a run to go on with, one that is finished, or one that is to be mended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from doxa.engine.checkpoint import CHECKPOINT, PREVIOUS
from doxa.errors import BadInput, shorten
from doxa.predict.belief import Belief
from doxa.runs.folder import SavedRun, open_belief, open_whole_run, read_spec, spec_bytes
from doxa.runs.manifest import (
    BELIEF,
    MANIFEST,
    MEMBERS,
    PARTS,
    RUN,
    TRAINING,
    DamagedRun,
    FileDigest,
    Manifest,
    checkpoint_files,
    find_damage,
    read_manifest,
)
from doxa.runs.own_seal import STORE_SUFFIX, is_damaged
from doxa.runs.plan import Plan
from doxa.storage.disk import is_temporary, sweep_temporaries
from doxa.storage.json_text import canonical_json
from doxa.storage.lock import LOCK

COMPARED_KEYS = {
    "data": "source",
    "rows": "number of rows",
    "held_out": "number of rows held out",
    "task": "task",
    "target": "target",
    "classes": "list of classes",
    "plan": "plan",
}  # of a run to go on with


@dataclass(frozen=True)
class Claim:
    """What was found in a folder that a run is learned in."""

    finished: SavedRun | None = None  # a run that is whole: there is nothing left to learn
    sealed: Manifest | None = None  # of a finished run that is damaged
    belief: Belief | None = None  # of such a run, if what was learned is whole
    words: dict[str, Any] | None = None  # of a run whose belief is whole
    is_to_describe: bool = True  # whether to write what the run is before it is learned; else only as it is finished


def require_free_folder(folder: str | PathLike[str], resume: bool) -> None:
    """Refuse a folder that holds something else, or a run to go on with that was not asked for."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; choose another folder for the run")
    contents = folder_contents(folder)
    if not contents:
        return
    if not contents & {RUN, MANIFEST} or (RUN not in contents and contents - {*PARTS, MANIFEST, TRAINING, MEMBERS}):
        raise BadInput(f"{folder} is not empty and holds no run; choose another folder")
    if not resume:
        raise BadInput(f"{folder} already holds a run; go on with it by --resume, or choose another folder with --out")


def folder_contents(folder: Path) -> set[str]:
    """The names in a folder, but for what a killed process may have left before it wrote anything."""
    if not folder.exists():
        return set()
    return {path.name for path in folder.iterdir() if path.name != LOCK and not is_temporary(path.name)}


def claim_folder(folder: Path, spec: dict[str, Any], resume: bool, say: Callable[[str], None]) -> Claim:
    """Refuse a folder that holds another run, or one to go on with that was not asked for; else say what is there."""
    require_free_folder(folder, resume)
    if not folder_contents(folder):
        return Claim()
    for checkpoints in {path.parent for part in (TRAINING, MEMBERS) for path in (folder / part).rglob("*")}:
        sweep_temporaries(checkpoints)
    try:
        stored_spec = read_spec(folder)
    except DamagedRun as damage:
        sealed = _read_manifest(folder)
        if sealed is not None and sealed.question not in (None, question_digest(spec)):
            raise BadInput(
                f"{damage}. The arguments given are not those of the run in {folder}; use the same, or another folder"
            ) from None
        say(f"{damage.args[0]}; this is done now")
        # Other arguments may still be refused.
        return _mending(folder, sealed, {**spec, "status": "finished"}, False, say) or Claim(
            sealed=sealed, is_to_describe=False
        )
    _require_same_question(folder, stored_spec, spec)
    if stored_spec["status"] != "finished":
        return Claim()
    try:
        return Claim(finished=open_whole_run(folder))
    except DamagedRun as damage:
        sealed = _read_manifest(folder)
        say(f"{damage.args[0]}; this is done now")
        return _mending(folder, sealed, stored_spec, True, say) or Claim(sealed=sealed, is_to_describe=sealed is None)


def _mending(
    folder: Path, sealed: Manifest | None, words: dict[str, Any], is_stored: bool, say: Callable[[str], None]
) -> Claim | None:
    """The claim to a damaged run of these words, nothing of which has to be learned again; None where it has.

    Words that are not those stored come from the arguments.
    """
    digest, intact = None if sealed is None else sealed.digest(BELIEF), intact_parts(folder, sealed)
    if digest is not None and BELIEF in intact and (RUN in intact if is_stored else _are_sealed(words, sealed)):
        with suppress(DamagedRun):
            belief = open_belief(folder, words, sha256=digest.sha256)
            return Claim(sealed=sealed, belief=belief, words=words, is_to_describe=False)
    if sealed is not None:
        _remove_damaged_checkpoints(folder, say)
    return None


def _are_sealed(words: dict[str, Any], sealed: Manifest | None) -> bool:
    return sealed is not None and FileDigest.of_bytes(spec_bytes(words)) == sealed.digest(RUN)


def _read_manifest(folder: Path) -> Manifest | None:
    with suppress(DamagedRun):
        return read_manifest(folder)
    return None


def _remove_damaged_checkpoints(folder: Path, say: Callable[[str], None]) -> None:
    """Those that are bad by their own seals; a mend that was interrupted left others than were sealed, and goes on."""
    for path in checkpoint_files(folder):
        if path.suffix == STORE_SUFFIX and is_damaged(path):
            say(f"{path} is damaged too: it is removed with the checkpoints that need it, and trained anew")
            for name in (CHECKPOINT, PREVIOUS, path.name):
                path.with_name(name).unlink(missing_ok=True)
        elif path.name in (CHECKPOINT, PREVIOUS) and path.exists() and is_damaged(path):
            say(f"{path} is damaged too: it is removed")
            path.unlink()


def _require_same_question(folder: Path, stored_spec: dict[str, Any], spec: dict[str, Any]) -> None:
    if stored_spec.get("pruned") is not None:
        raise BadInput(f"the run in {folder} is a pruned one, which `doxa prune` makes; choose another folder")
    # One of an older Doxa may lack a knob.
    stored_spec = {**stored_spec, "plan": {**Plan().state(), **stored_spec["plan"]}}
    for name, description in COMPARED_KEYS.items():
        if stored_spec.get(name) != spec[name]:
            raise BadInput(
                f"the run in {folder} has another {description}{_differences(stored_spec.get(name), spec[name])}; use "
                f"the same arguments to go on, or another folder"
            )
    if stored_spec.get("digest") not in (None, spec["digest"]) or stored_spec.get("preparation") != spec["preparation"]:
        raise BadInput(
            f"the run in {folder} was learned from other rows: {shorten(spec['data'])} has changed since, or is read "
            f"in another way; go on with the rows it began with, or choose another folder"
        )


def question_digest(spec: dict[str, Any]) -> str:
    """The same for the same arguments and rows, whatever was learned; a knob that is not turned counts for nothing."""
    question = {name: spec.get(name) for name in (*COMPARED_KEYS, "digest", "preparation", "pruned")}
    defaults = Plan().state()
    question["plan"] = {name: value for name, value in spec["plan"].items() if value != defaults.get(name)}
    return hashlib.sha256(canonical_json(question).encode("utf-8", "backslashreplace")).hexdigest()


def _differences(stored: Any, new: Any) -> str:
    """What two plans differ in, in brackets."""
    if not (isinstance(stored, dict) and isinstance(new, dict)) or "learner" not in new:
        return ""
    changed = [f"{k}: {stored.get(k)} there, {v} here" for k, v in new.items() if stored.get(k) != v]
    return f" ({shorten('; '.join(changed), 200)})"


def remove_empty_run(folder: Path) -> None:
    """Leave no run behind that has learned nothing: the next attempt may have the folder."""
    if folder_contents(folder) <= {RUN}:
        (folder / RUN).unlink(missing_ok=True)


def intact_parts(folder: Path, sealed: Manifest | None) -> set[str]:
    """Of a damaged run, the parts that are as they were sealed."""
    if sealed is None:
        return set()
    damage = find_damage(folder, sealed)
    return {name for name in sealed.files if name not in damage and (folder / name).exists()}
