"""What a file of a run is worth by the seal or the checksums that it has of its own."""

from __future__ import annotations

import os
from pathlib import Path

from doxa.errors import BrokenFile, NewerFile
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
    sealed.read(path, None)


def is_damaged(path: Path) -> bool:
    """Whether a checkpoint or a store is damaged; one that may not be read, or that a newer Doxa wrote, is not."""
    try:
        (verify_store if path.suffix == STORE_SUFFIX else verify_sealed)(path)
    except BrokenFile as error:
        return os.access(path, os.R_OK) and not isinstance(error, NewerFile)
    return False
