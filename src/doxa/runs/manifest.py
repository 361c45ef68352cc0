"""The manifest of a run: size and SHA-256 of every file that belongs to it, sealed and written last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from doxa.errors import BrokenFile, shorten
from doxa.storage.disk import atomic_write, is_temporary
from doxa.storage.json_text import has_seal, parse_json, read_bounded, to_sealed_bytes
from doxa.storage.lock import LOCK
from doxa.storage.reading import file_sha256

MANIFEST = "manifest.json"
RUN, BELIEF, TABLE, RESULT = "run.json", "belief.doxa", "table.doxa", "result.json"
PREDICTING = (RUN, BELIEF, TABLE)  # what predictions depend on
PARTS = (*PREDICTING, RESULT)
TRAINING, MEMBERS = "training", "members"  # folders of checkpoints, of a learner that is named and of auto
KIND, VERSION = "doxa manifest", 1
MEND = "restore it from a copy, or make it again by the same `doxa fit` with --resume"
RETRIES = 10  # of a reader, if parts are replaced one after the other as it reads


class DamagedRun(BrokenFile):
    """A finished run, a file of which is missing or not as it was sealed."""


@dataclass(frozen=True)
class FileDigest:
    """What a file holds, told by its size and its SHA-256."""

    size: int
    sha256: str

    @classmethod
    def of_bytes(cls, raw: bytes) -> FileDigest:
        return cls(len(raw), hashlib.sha256(raw).hexdigest())

    @classmethod
    def of_file(cls, path: Path) -> FileDigest:
        return cls(path.stat().st_size, file_sha256(path))


@dataclass(frozen=True)
class Manifest:
    """What each part of a run may hold: one thing; while it is replaced the old or the new, None for no file."""

    files: dict[str, tuple[FileDigest | None, ...]]
    checkpoints: dict[str, FileDigest] = field(default_factory=dict)  # by path; no prediction depends on them
    question: str | None = None  # the digest of what the run was asked

    def digest(self, name: str) -> FileDigest | None:
        """What a part holds, where that is one thing."""
        allowed = self.files.get(name, ())
        return allowed[0] if len(allowed) == 1 else None


def take_stock(folder: Path, question: str | None) -> Manifest:
    """The manifest of the files that a folder holds now."""
    parts = [folder / name for name in PARTS if (folder / name).exists()]
    checkpoints = list(checkpoint_files(folder))
    with ThreadPoolExecutor(4) as pool:  # hashing leaves the interpreter to others
        digests = dict(zip([*parts, *checkpoints], pool.map(FileDigest.of_file, [*parts, *checkpoints]), strict=True))
    return Manifest(
        {path.name: (digests[path],) for path in parts},
        {path.relative_to(folder).as_posix(): digests[path] for path in checkpoints},
        question,
    )


def checkpoint_files(folder: Path) -> Iterator[Path]:
    """What learning left below a run's folder, to go on from; neither locks nor temporaries."""
    for part in (TRAINING, MEMBERS):
        for path in sorted((folder / part).rglob("*")):
            if path.is_file() and path.name != LOCK and not is_temporary(path.name):
                yield path


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Seal a run: its manifest, whole or not at all."""
    files = {name: [None if d is None else vars(d) for d in allowed] for name, allowed in manifest.files.items()}
    fields = {
        "kind": KIND,
        "version": VERSION,
        "files": files,
        "checkpoints": {name: vars(digest) for name, digest in manifest.checkpoints.items()},
        "question": manifest.question,
    }
    write_bytes(folder / MANIFEST, to_sealed_bytes(fields))


def write_bytes(path: Path, raw: bytes) -> None:
    """Write a file whole or not at all."""
    with atomic_write(path, "wb") as file:
        file.write(raw)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a run; None where it has none."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    raw = read_bounded(path)
    if not has_seal(raw):
        raise DamagedRun(f"{path} is damaged: it does not match its seal; {MEND}")
    try:
        content = parse_json(raw)
        if content["kind"] != KIND:
            raise ValueError(f"its kind is {content['kind']!r}")
        if content["version"] != VERSION:
            raise BrokenFile(
                f"{path} has version {shorten(str(content['version']))}; this Doxa reads {VERSION}: upgrade Doxa"
            )
        files = {
            _part_name(name): tuple(None if d is None else _read_digest(d) for d in allowed)
            for name, allowed in content["files"].items()
        }
        checkpoints = {str(name): _read_digest(digest) for name, digest in content["checkpoints"].items()}
        question = content["question"]
        return Manifest(files, checkpoints, None if question is None else str(question))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedRun(f"{path} makes no sense ({shorten(repr(error))}); {MEND}") from None


def _part_name(name: str) -> str:
    if name not in PARTS:
        raise ValueError(f"{name!r} is no part of a run")
    return name


def _read_digest(entry: Any) -> FileDigest:
    size, sha256 = entry["size"], entry["sha256"]
    if not isinstance(size, int) or isinstance(size, bool) or not isinstance(sha256, str):
        raise ValueError("a size or a SHA-256 is none")
    return FileDigest(size, sha256)


def find_damage(folder: Path, manifest: Manifest, names: Sequence[str] = PARTS) -> dict[str, str]:
    """Of the parts of a run, those that are not as they were sealed, and what is wrong with each."""
    damage = {}
    for name in names:
        allowed, path = manifest.files.get(name, (None,)), folder / name
        if not path.exists():
            if None not in allowed:
                damage[name] = f"{path} is missing"
        elif allowed == (None,):
            damage[name] = f"{path} is not of this run: its manifest has no such file"
        elif path.is_dir():
            damage[name] = f"{path} is a folder, not the file that was sealed"
        else:
            sizes = {digest.size for digest in allowed if digest is not None}
            size = path.stat().st_size
            if size not in sizes:
                expected = " or ".join(f"{s:,}" for s in sorted(sizes))
                damage[name] = f"{path} is damaged: it has {size:,} bytes, and {expected} were sealed"
            elif FileDigest.of_file(path) not in allowed:
                damage[name] = f"{path} is damaged: it does not match its SHA-256 in {MANIFEST}"
    return damage


def find_lasting_damage(
    folder: Path, manifest: Manifest, names: Sequence[str] = PARTS
) -> tuple[dict[str, str], Manifest]:
    """What is damaged, and the manifest that it was compared with; a part that is replaced meanwhile is no damage."""
    damage = find_damage(folder, manifest, names)
    for _ in range(RETRIES):
        if not damage:
            break
        newer = read_manifest(folder)
        if newer is None or newer == manifest:
            break
        manifest = newer
        damage = find_damage(folder, manifest, names)
    return damage, manifest


def require_whole_run(folder: Path, manifest: Manifest, names: Sequence[str] = PARTS) -> Manifest:
    """Refuse a run of which a part is not as it was sealed, by the names of all such files; the manifest that fits."""
    damage, manifest = find_lasting_damage(folder, manifest, names)
    if damage:
        raise DamagedRun(f"{'; '.join(damage.values())}; {MEND}")
    return manifest


def replace_part(folder: Path, name: str, raw: bytes) -> None:
    """Put a file in the place of a part of a sealed run; killed at any time, the run is as it was or as it will be."""
    manifest = read_manifest(folder)
    if manifest is None:
        write_bytes(folder / name, raw)
        return
    new = FileDigest.of_bytes(raw)
    before = manifest.files.get(name, (None,))
    files = {**manifest.files, name: (*(d for d in before if d != new), new)}
    write_manifest(folder, replace(manifest, files=files))
    write_bytes(folder / name, raw)
    write_manifest(folder, replace(manifest, files={**files, name: (new,)}))
