"""What a file of a run is worth by the seal or the checksums that it has of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from doxa.errors import BrokenFile
from doxa.storage import sealed
from doxa.storage.rows import blocks
from doxa.storage.sample_store import SampleStore

STORE_SUFFIX = ".rows"


def verify_store(path: Path) -> None:
    """Read every row of a store of samples; one that is damaged is BrokenFile."""
    store = SampleStore.open(path)
    for start, stop in blocks(store):
        store.read(start, stop)


def verify_sealed(path: Path) -> None:
    """Read all of a `.doxa` file, whatever it holds; one that is damaged is BrokenFile."""
    sealed.read(path, str(_header(path).get("format", "")))


def is_damaged(path: Path) -> bool:
    """Whether a checkpoint or a store is damaged; one that may not be read, or that a newer Doxa wrote, is not."""
    try:
        (verify_store if path.suffix == STORE_SUFFIX else verify_sealed)(path)
    except BrokenFile:
        version = _header(path).get("version")
        is_newer = path.suffix != STORE_SUFFIX and isinstance(version, int) and version > sealed.VERSION
        return os.access(path, os.R_OK) and not is_newer
    return False


def _header(path: Path) -> Mapping[str, Any]:
    """What a file says that it holds; what is wrong with one that does not is said as it is read."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads(json.loads(file.metadata()["doxa"])["header"])
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return {}
    return header if isinstance(header, dict) else {}
