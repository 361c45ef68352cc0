"""CIFAR-10."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doxa.data import verified
from doxa.data.card import Card, File
from doxa.data.dataset import Dataset
from doxa.data.files import existing, first_existing, missing_file_error, read_bytes
from doxa.data.formats.cifar10_archive import read_members
from doxa.data.formats.cifar10_sheets import read_sheet_files, read_sheets, sheet_files
from doxa.data.labels import check_labels
from doxa.errors import BadInput, BrokenFile

BATCHES = {  # with their SHA-256
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
ROWS = 10_000
RECORD = 1 + 3 * 32 * 32  # the label, then a red, a green and a blue plane
UNPACKED = ("cifar10/cifar-10-batches-bin", "cifar-10-batches-bin")


def _verify_together(paths: list[Path]) -> None:
    """Compare all batches, or all that the sheets hold, with what is published."""
    files = len(paths) // len(BATCHES)  # of a batch
    for number, (name, digest) in enumerate(BATCHES.items()):
        first, *others = paths[files * number : files * (number + 1)]
        if others:
            _require_published(read_sheet_files([first, *others]), first, name)
        else:
            verified.verify(first, {digest}, CARD.name)


FILE = File(
    path="cifar10/cifar-10-binary.tar.gz",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    bytes=170_052_171,
    sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    instead=(
        *(tuple(f"{folder}/{name}.bin" for name in BATCHES) for folder in UNPACKED),
        tuple(place for name in BATCHES for place in sheet_files(name)),
    ),
    verify_together=_verify_together,
)
CARD = Card(
    name="cifar10",
    description="Colour photographs of ten kinds of thing, 50,000 to train on and 10,000 to test with.",
    rows=60_000,
    shape=(3, 32, 32),
    task="classification",
    licence="none stated by the authors; cite the report",
    citation="Krizhevsky (2009), Learning multiple layers of features from tiny images",
    home="https://www.cs.toronto.edu/~kriz/cifar.html",
    files=(FILE,),
)

Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]


def cifar10() -> Dataset:
    """Colour photographs of ten kinds of thing: 50,000 and 10,000, 3×32×32, read as `cifar10_batch` does.

    Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    *train, test = _read_batches(tuple(BATCHES))
    x, y = (np.concatenate(parts) for parts in zip(*train, strict=True))
    return Dataset("cifar10", x, y, *test, classes=10)


def cifar10_batch(name: str) -> Batch:
    """One of the six published batches: images uint8 [10000, 3, 32, 32] and labels int64 [10000].

    From `cifar-10-batches-bin/` in cifar10/ of the data folder or in the folder itself, else from the published
    archive in cifar10/, else from lossless WebP sheets there.
    """
    if name not in BATCHES:
        raise BadInput(f"CIFAR-10 has no batch {name!r}; its batches are {', '.join(BATCHES)}")
    return _read_batches((name,))[0]


def _read_batches(names: Sequence[str]) -> list[Batch]:
    """From the first place of each batch that is whole; the error is that of the first that is not."""
    batches: dict[str, Batch] = {}
    damage: list[BrokenFile] = []
    for read in (_read_unpacked, _read_archived, _read_from_sheets):
        try:
            batches |= read([name for name in names if name not in batches], damage)
        except BrokenFile as error:
            damage.append(error)
        except BadInput:
            if not damage:
                raise
    if len(batches) < len(names):
        raise damage[0]
    return [batches[name] for name in names]


def _read_unpacked(names: Sequence[str], damage: list[BrokenFile]) -> dict[str, Batch]:
    batches = {}
    for name in names:
        for path in existing(*(f"{folder}/{name}.bin" for folder in UNPACKED)):
            try:
                raw = read_bytes(verified.verify(path, {BATCHES[name]}, CARD.name))
                batches[name] = _parse_records(raw, path)
                break
            except BrokenFile as error:
                damage.append(error)
    return batches


def _read_archived(names: Sequence[str], damage: list[BrokenFile]) -> dict[str, Batch]:
    for archive in existing(FILE.path) if names else ():
        try:
            members = read_members(verified.verify(archive, FILE.digests, CARD.name), names)
            return {name: _parse_records(members[name], archive) for name in names}
        except BrokenFile as error:
            damage.append(error)
    return {}


def _read_from_sheets(names: Sequence[str], damage: list[BrokenFile]) -> dict[str, Batch]:
    batches = {}
    for name in names:
        first_sheet = first_existing(sheet_files(name)[0])
        if first_sheet is None:
            raise missing_file_error([FILE.path, *(f"{folder}/{name}.bin" for folder in UNPACKED)], CARD.name, FILE.url)
        batches[name] = read_sheets(name)
        _require_published(batches[name], first_sheet, name)
    return batches


def _require_published(batch: Batch, first_sheet: Path, name: str) -> None:
    """Whoever made the sheets, the records they hold are those of the published file."""
    images, labels = batch
    records = np.column_stack([labels.astype(np.uint8), images.reshape(len(images), -1)]).tobytes()
    digest = hashlib.sha256(records).hexdigest()
    verified.require_known(first_sheet.with_name(f"{name}.*"), digest, {BATCHES[name]}, CARD.name)


def _parse_records(raw: bytes, path: Path) -> Batch:
    if len(raw) != ROWS * RECORD:
        raise BrokenFile(f"{path} has {len(raw)} bytes, expected {ROWS * RECORD}; get a fresh copy of it")
    records = np.frombuffer(raw, np.uint8).reshape(ROWS, RECORD)
    return records[:, 1:].reshape(ROWS, 3, 32, 32).copy(), check_labels(records[:, 0], path, ROWS, classes=10)
