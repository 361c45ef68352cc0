"""Every file of a run verified, those included that no prediction depends on; and older runs sealed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from doxa.errors import BadInput, BrokenFile
from doxa.results import read_result
from doxa.runs.claim import question_digest
from doxa.runs.folder import open_whole_run, read_spec, spec_bytes
from doxa.runs.manifest import (
    BELIEF,
    MANIFEST,
    MEMBERS,
    PARTS,
    RESULT,
    RUN,
    TABLE,
    TRAINING,
    DamagedRun,
    FileDigest,
    Manifest,
    checkpoint_files,
    find_lasting_damage,
    read_manifest,
    replace_part,
    take_stock,
    write_manifest,
)
from doxa.runs.own_seal import STORE_SUFFIX, verify_sealed, verify_store
from doxa.storage.disk import is_temporary
from doxa.storage.lock import LOCK, folder_lock

RESTORE = "restore it from a copy, or have `doxa fit` with the same arguments and --resume make it again"
NOT_NEEDED = "no prediction depends on it"


@dataclass(frozen=True)
class FileCheck:
    """How it is with one file of a run: intact, unsealed, damaged, missing, temporary, lock, removed or foreign."""

    name: str
    state: str
    advice: str = ""

    @property
    def is_well(self) -> bool:
        return self.state not in ("damaged", "missing")


@dataclass(frozen=True)
class RunCheck:
    """How it is with a run: sealed, unsealed, unfinished or damaged."""

    folder: Path
    state: str
    files: tuple[FileCheck, ...]
    advice: str = ""

    @property
    def is_whole(self) -> bool:
        return self.state in ("sealed", "unsealed")


def check_run(folder: str | PathLike[str]) -> RunCheck:
    """Verify every file in the folder of a run; what is no run is an error."""
    folder = Path(folder)
    spec: dict[str, Any] | None = None
    with suppress(DamagedRun):
        spec = read_spec(folder)
    is_unfinished = spec is not None and spec["status"] != "finished"
    files, manifest = [], None
    if not is_unfinished:
        try:
            manifest = read_manifest(folder)
        except DamagedRun:
            files.append(FileCheck(MANIFEST, "damaged", RESTORE))
        else:
            if manifest is not None:
                files.append(FileCheck(MANIFEST, "intact"))
            elif spec is None or spec["version"] > 1:
                files.append(FileCheck(MANIFEST, "missing", f"{RESTORE}; or seal what is there: doxa runs seal"))
    files += [*_check_parts(folder, spec, manifest), *_check_checkpoints(folder, manifest), *_check_others(folder)]
    if not all(file.is_well for file in files):
        return RunCheck(folder, "damaged", tuple(files), RESTORE)
    if is_unfinished:
        advice = "it is still being written, or was interrupted: go on with the same `doxa fit` and --resume"
        return RunCheck(folder, "unfinished", tuple(files), advice)
    if manifest is None:
        advice = "an older Doxa wrote it, and damage may go unseen: doxa runs seal seals it as it is"
        return RunCheck(folder, "unsealed", tuple(files), advice)
    return RunCheck(folder, "sealed", tuple(files))


def _check_parts(folder: Path, spec: dict[str, Any] | None, manifest: Manifest | None) -> Iterator[FileCheck]:
    if manifest is not None:
        damage, _ = find_lasting_damage(folder, manifest)
        for name in PARTS:
            if name in damage:
                yield FileCheck(name, "damaged" if (folder / name).exists() else "missing", RESTORE)
            elif (folder / name).exists():
                yield FileCheck(name, "intact")
        return
    needed = {RUN}
    if spec is not None and spec["status"] == "finished":
        needed |= {BELIEF} if spec["preparation"] is None else {BELIEF, TABLE}
    for name in PARTS:
        if (folder / name).exists():
            yield _check_by_itself(folder / name, name, RESTORE)
        elif name in needed:
            yield FileCheck(name, "missing", RESTORE)


def _check_checkpoints(folder: Path, manifest: Manifest | None) -> Iterator[FileCheck]:
    """Those that learning goes on from."""
    listed = {} if manifest is None else dict(manifest.checkpoints)
    for path in checkpoint_files(folder):
        name = path.relative_to(folder).as_posix()
        digest = listed.pop(name, None)
        advice = f"{NOT_NEEDED}; remove {folder / Path(name).parts[0]}, and learning begins anew where it is needed"
        if digest is None:
            yield _check_by_itself(path, name, advice)
        elif FileDigest.of_file(path) == digest:
            yield FileCheck(name, "intact")
        else:
            yield FileCheck(name, "damaged", advice)
    for name in listed:
        yield FileCheck(name, "removed", NOT_NEEDED)


def _check_others(folder: Path) -> Iterator[FileCheck]:
    known = {*PARTS, MANIFEST, TRAINING, MEMBERS}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if is_temporary(path.name):
            yield FileCheck(
                name, "temporary", "left by a process that was killed; the next that writes here removes it"
            )
        elif path.name == LOCK:
            yield FileCheck(
                name, "lock", "somebody is writing here, or was killed; the next that writes here finds out"
            )
        elif path.parent == folder and path.name not in known:
            yield FileCheck(name, "foreign", "not of this run; nothing depends on it")


def _check_by_itself(path: Path, name: str, advice: str) -> FileCheck:
    """A file that no manifest speaks of, by the seal or the checksums that it has of its own."""
    try:
        if path.name == RUN:
            read_spec(path.parent)
        elif path.name == RESULT:
            read_result(path)
        elif path.suffix == STORE_SUFFIX:
            verify_store(path)
        elif path.suffix == ".doxa":
            verify_sealed(path)
        else:
            return FileCheck(name, "foreign", "not written by Doxa; nothing depends on it")
    except (BrokenFile, BadInput):
        return FileCheck(name, "damaged", advice)
    return FileCheck(name, "unsealed")


def seal_run(folder: str | PathLike[str]) -> bool:
    """Seal a finished run that has no manifest, as it is now; whether that was needed."""
    folder = Path(folder)
    spec = read_spec(folder)
    with folder_lock(folder):
        if read_manifest(folder) is not None:
            open_whole_run(folder)
            return False
        check = check_run(folder)
        damaged = [file.name for file in check.files if not file.is_well and file.name != MANIFEST]
        if damaged:
            raise BrokenFile(f"{folder} cannot be sealed: {', '.join(damaged)} is damaged or missing; {RESTORE}")
        if check.state == "unfinished":
            raise BadInput(f"{folder} cannot be sealed: {check.advice}")
        write_manifest(folder, take_stock(folder, question_digest(spec)))
        try:
            open_whole_run(folder)
            replace_part(folder, RUN, spec_bytes(spec))
        except (BrokenFile, BadInput):
            (folder / MANIFEST).unlink()
            raise
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_whole_run(folder)
    return True
