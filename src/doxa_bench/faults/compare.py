"""What a finished folder comes to, whenever and however often it was interrupted: its files without their times."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from doxa.runs.manifest import MANIFEST
from doxa.storage.disk import is_temporary
from doxa.storage.json_text import SEAL
from doxa.storage.lock import LOCK
from doxa.storage.sample_store import SampleStore

# The last but one depends on where a run was interrupted; clocks run on; the seal of a file with a time has one too.
IGNORED_FILES = ("checkpoint-previous.doxa",)
TIMES = ("seconds", "since", "time", "started", "date", SEAL)


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder and a digest of what is in it."""
    return {
        str(path.relative_to(folder)): file_digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in IGNORED_FILES
    }


def file_digest(path: Path) -> str:
    """That of a file's bytes, and where they hold times, of what they say without these."""
    content = path.read_bytes()
    if path.suffix == ".json":
        fields = timeless(json.loads(content))
        if path.name == MANIFEST:
            fields = _sizeless(fields)  # of a file with a time in it both are others
        content = json.dumps(fields, sort_keys=True).encode()
    elif path.suffix == ".doxa":
        content = _timeless_tensors(path) or content
    elif path.suffix == ".rows":  # each store has a random name of its own, and whose rows they are does not matter
        store = SampleStore.open(path)
        content = str(len(store)).encode() + _bytes(store.read(0, len(store)))
    return hashlib.sha256(content).hexdigest()


def timeless(value: Any) -> Any:
    """JSON without times, and without its seal, which is over them."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in TIMES}
    if isinstance(value, list):
        return [timeless(v) for v in value]
    return value


def _sizeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _sizeless(v) for k, v in value.items() if k not in ("size", "sha256")}
    return [_sizeless(v) for v in value] if isinstance(value, list) else value


def _timeless_tensors(path: Path) -> bytes:
    """Header and tensors of a sealed file; nothing where it is another."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads(json.loads((file.metadata() or {})["doxa"])["header"])
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError, ValueError, KeyError):
        return b""
    parts = [json.dumps(timeless(header), sort_keys=True).encode()]
    for name, tensor in tensors.items():
        parts += [f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), _bytes(tensor)]
    return b"\0".join(parts)


def _bytes(tensor: Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def remnants(folder: Path) -> list[str]:
    """What a killed process was in the midst of and nobody needs: temporary files and locks."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if is_temporary(path.name) or path.name == LOCK
    )


def first_difference(expected: dict[str, str], got: dict[str, str]) -> str | None:
    """The first file in which two folders differ, in words."""
    for name in sorted({*expected, *got}):
        if name not in got:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} should not be there"
        if expected[name] != got[name]:
            return f"{name} is another"
    return None
