"""CIFAR-10: the canonical files, the sheets, and the real set where DOXA_DATA has it."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from doxa.data import cifar10, cifar10_batch
from doxa.errors import BadInput, BrokenFile

# Published with cifar-10-binary.tar.gz: of the five training batches and the test batch, as stored there.
MD5 = (
    "5dd7e06a14cb22eb9f671a540d1b7c25",
    "5ea93a67294ea407fff1d09f752e9692",
    "942cd6a4bcdd0dd3c604fbe906cb4421",
    "ae636b3ba5c66a11e91e8cb52e771fcb",
    "53f37980c15c3d472c316c40844f3f0d",
    "803d5f7f4d78ea53de84dbe85f74fb6d",
)


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_up: None) -> Path:
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    (tmp_path / "cifar10").mkdir()
    return tmp_path


def records(seed: int, rows: int = 10_000) -> np.ndarray:
    records_array = np.random.default_rng(seed).integers(0, 256, (rows, 3073), dtype=np.uint8)
    records_array[:, 0] %= 10
    return records_array


def write_bin(folder: Path, name: str, records_array: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.bin"
    path.write_bytes(records_array.tobytes())
    return path


def write_sheets(folder: Path, name: str, records_array: np.ndarray) -> None:
    """The sheets drawn image by image, as one would with scissors and glue."""
    from PIL import Image

    for sheet in range(4):
        pixels = np.zeros((1600, 1600, 3), np.uint8)
        for place in range(2500):
            top, left = 32 * (place // 50), 32 * (place % 50)
            planes = records_array[2500 * sheet + place, 1:].reshape(3, 32, 32)
            for colour in range(3):
                pixels[top : top + 32, left : left + 32, colour] = planes[colour]
        # Noise does not compress: the quickest effort is as good as any.
        Image.fromarray(pixels).save(folder / f"{name}.{sheet}.webp", lossless=True, quality=0, method=0)
    np.save(folder / f"{name}.labels.npy", records_array[:, 0])


@pytest.mark.parametrize("place", ["cifar10/cifar-10-batches-bin", "cifar-10-batches-bin"])
def test_reads_canonical_files_in_both_places(data_folder: Path, place: str) -> None:
    records_array = records(0)
    write_bin(data_folder / place, "data_batch_3", records_array)
    images, labels = cifar10_batch("data_batch_3")
    assert (images.dtype, labels.dtype) == (np.uint8, np.int64)
    assert np.array_equal(images, records_array[:, 1:].reshape(10_000, 3, 32, 32))
    assert np.array_equal(labels, records_array[:, 0])
    assert images.flags.writeable


def test_reads_sheets_image_for_image(data_folder: Path) -> None:
    pytest.importorskip("PIL")
    records_array = records(1)
    write_sheets(data_folder / "cifar10", "test_batch", records_array)
    images, labels = cifar10_batch("test_batch")
    assert (images.dtype, labels.dtype) == (np.uint8, np.int64)
    assert np.array_equal(images, records_array[:, 1:].reshape(10_000, 3, 32, 32))
    assert np.array_equal(labels, records_array[:, 0])


def write_archive(folder: Path, members: dict[str, bytes]) -> Path:
    path = folder / "cifar-10-binary.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, raw in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(raw)
            archive.addfile(about, io.BytesIO(raw))
    return path


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Batches of ten images, for the sake of time."""
    monkeypatch.setattr(sys.modules["doxa.data.sets.cifar10"], "ROWS", 10)
    return 10


def test_reads_the_published_archive(data_folder: Path, few: int) -> None:
    names = [f"data_batch_{number}" for number in (5, 4, 3, 2, 1)] + ["test_batch"]
    kinds = (5, 4, 3, 2, 1, 6)
    members = {f"cifar-10-batches-bin/{n}.bin": bytes([k]) * few * 3073 for n, k in zip(names, kinds, strict=True)}
    write_archive(data_folder / "cifar10", {"cifar-10-batches-bin/readme.html": b"<html>", **members})
    read = cifar10()
    assert read.x_train[::few, 0, 0, 0].tolist() == read.y_train[::few].tolist() == [1, 2, 3, 4, 5]
    assert np.unique(read.x_test).tolist() == np.unique(read.y_test).tolist() == [6]


def test_unpacked_files_are_read_before_the_archive_and_the_archive_before_sheets(data_folder: Path, few: int) -> None:
    archived, unpacked = records(2, few), records(3, few)
    write_archive(data_folder / "cifar10", {"cifar-10-batches-bin/test_batch.bin": archived.tobytes()})
    (data_folder / "cifar10" / "test_batch.0.webp").write_bytes(b"no picture")
    assert np.array_equal(cifar10_batch("test_batch")[1], archived[:, 0])
    write_bin(data_folder / "cifar-10-batches-bin", "test_batch", unpacked)
    assert np.array_equal(cifar10_batch("test_batch")[1], unpacked[:, 0])


def test_broken_archive_is_refused_by_name(data_folder: Path, few: int) -> None:
    records_array = records(2, few).tobytes()
    path = write_archive(data_folder / "cifar10", {"cifar-10-batches-bin/test_batch.bin": records_array})
    with pytest.raises(BrokenFile, match=r"cifar-10-binary\.tar\.gz .* it holds no batch data_batch_1"):
        cifar10_batch("data_batch_1")
    archive_bytes = path.read_bytes()
    for raw in (b"", b"<html>no such file</html>", archive_bytes[:1000], archive_bytes[: len(archive_bytes) // 2]):
        path.write_bytes(raw)
        with pytest.raises(BrokenFile, match=r"cifar-10-binary\.tar\.gz .* it does not unpack"):
            cifar10_batch("test_batch")
    write_archive(data_folder / "cifar10", {"cifar-10-batches-bin/test_batch.bin": bytes(3073)})
    with pytest.raises(BrokenFile, match="has 3073 bytes, expected 30730;"):
        cifar10_batch("test_batch")


def test_joins_the_five_training_batches_in_order(data_folder: Path, few: int) -> None:
    for number in range(1, 6):
        records_array = np.full((few, 3073), number, np.uint8)
        write_bin(data_folder / "cifar-10-batches-bin", f"data_batch_{number}", records_array)
    write_bin(data_folder / "cifar-10-batches-bin", "test_batch", np.full((few, 3073), 6, np.uint8))
    read = cifar10()
    assert (read.name, read.classes, read.maximum) == ("cifar10", 10, 255)
    assert read.x_train.shape == (5 * few, 3, 32, 32)
    assert read.x_train[::few, 0, 0, 0].tolist() == read.y_train[::few].tolist() == [1, 2, 3, 4, 5]
    assert np.unique(read.x_test).tolist() == np.unique(read.y_test).tolist() == [6]


def test_missing_file_is_named_with_its_places_and_source(data_folder: Path) -> None:
    with pytest.raises(BadInput) as caught:
        cifar10()
    message = str(caught.value)
    assert message.startswith(f"the file {data_folder}/cifar10/cifar-10-binary.tar.gz (or ")
    assert f"{data_folder}/cifar10/cifar-10-batches-bin/data_batch_1.bin" in message
    assert f"{data_folder}/cifar-10-batches-bin/data_batch_1.bin" in message
    assert "put it there, from https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz" in message


def test_unknown_batch_is_refused(data_folder: Path) -> None:
    with pytest.raises(BadInput, match="no batch 'data_batch_6'; its batches are data_batch_1"):
        cifar10_batch("data_batch_6")


def test_canonical_file_of_wrong_length_is_refused(data_folder: Path) -> None:
    path = write_bin(data_folder / "cifar-10-batches-bin", "data_batch_1", np.zeros((9_999, 3073), np.uint8))
    with pytest.raises(BrokenFile, match="30726927 bytes, expected 30730000") as caught:
        cifar10_batch("data_batch_1")
    assert str(caught.value).startswith(str(path))


def test_canonical_file_with_impossible_labels_is_refused(data_folder: Path) -> None:
    records_array = np.zeros((10_000, 3073), np.uint8)
    records_array[17, 0] = 11
    write_bin(data_folder / "cifar-10-batches-bin", "data_batch_1", records_array)
    with pytest.raises(BrokenFile, match=r"data_batch_1\.bin holds the label 11, expected 0 to 9"):
        cifar10_batch("data_batch_1")


@pytest.fixture
def sheets(data_folder: Path) -> Path:
    """A black batch, as sheets."""
    pytest.importorskip("PIL")
    from PIL import Image

    for sheet in range(4):
        path = data_folder / "cifar10" / f"data_batch_1.{sheet}.webp"
        Image.new("RGB", (1600, 1600)).save(path, lossless=True, quality=0, method=0)
    np.save(data_folder / "cifar10" / "data_batch_1.labels.npy", np.zeros(10_000, np.uint8))
    return data_folder / "cifar10"


@pytest.mark.parametrize("file", ["data_batch_1.2.webp", "data_batch_1.labels.npy"])
def test_missing_part_of_a_batch_is_named(sheets: Path, file: str) -> None:
    (sheets / file).unlink()
    with pytest.raises(BadInput) as caught:
        cifar10_batch("data_batch_1")
    assert str(caught.value).startswith(f"the file {sheets / file} is missing; put it there")


@pytest.mark.parametrize("keep", [0, 10, -20])
def test_truncated_sheet_is_refused_by_name(sheets: Path, keep: int) -> None:
    path = sheets / "data_batch_1.3.webp"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BrokenFile, match=r"data_batch_1\.3\.webp is truncated or not a WebP image"):
        cifar10_batch("data_batch_1")


def test_sheet_of_another_size_is_refused(sheets: Path) -> None:
    from PIL import Image

    Image.new("RGB", (1600, 800)).save(sheets / "data_batch_1.0.webp", lossless=True)
    with pytest.raises(BrokenFile, match="1600×800 pixels, expected 1600×1600"):
        cifar10_batch("data_batch_1")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(9_999, np.uint8), r"shape \(9999,\), expected \(10000,\)"),
        (np.full(10_000, 10, np.uint8), "label 10, expected 0 to 9"),
        (np.zeros(10_000, np.float32), "float32 numbers, expected uint8"),
        (np.array([{"not": "data"}], dtype=object), "not a .npy file"),
    ],
)
def test_wrong_labels_are_refused(sheets: Path, labels: np.ndarray, message: str) -> None:
    np.save(sheets / "data_batch_1.labels.npy", labels, allow_pickle=True)
    with pytest.raises(BrokenFile, match=message):
        cifar10_batch("data_batch_1")


def test_truncated_labels_are_refused(sheets: Path) -> None:
    path = sheets / "data_batch_1.labels.npy"
    for keep in (0, 5, 60, 5_000):
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(BrokenFile, match=r"labels\.npy is truncated or not a \.npy file"):
            cifar10_batch("data_batch_1")


def test_missing_pillow_says_how_to_get_it(sheets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(BadInput, match=r"needs pillow; install it with: pip install 'doxa\[images\]'"):
        cifar10_batch("data_batch_1")


def test_real_set_is_the_published_one() -> None:
    named = os.environ.get("DOXA_DATA")
    if not named or not any((Path(named) / f).is_dir() for f in ("cifar10", "cifar-10-batches-bin")):
        pytest.skip("DOXA_DATA holds no CIFAR-10")
    pytest.importorskip("PIL")
    read = cifar10()
    assert np.bincount(read.y_train).tolist() == [5000] * 10
    assert np.bincount(read.y_test).tolist() == [1000] * 10
    assert read.y_train[:5].tolist() == [6, 9, 9, 4, 1]
    parts = [(read.x_train[n : n + 10_000], read.y_train[n : n + 10_000]) for n in range(0, 50_000, 10_000)]
    for (images, labels), md5 in zip([*parts, (read.x_test, read.y_test)], MD5, strict=True):
        stored = np.column_stack([labels.astype(np.uint8), images.reshape(10_000, -1)])
        assert hashlib.md5(stored.tobytes()).hexdigest() == md5


def test_damaged_batch_gives_way_to_the_archive(data_folder: Path, few: int) -> None:
    archived = records(2, few)
    path = write_bin(data_folder / "cifar-10-batches-bin", "test_batch", records(3, few - 1))
    with pytest.raises(BrokenFile, match=r"test_batch\.bin has 27657 bytes, expected 30730"):
        cifar10_batch("test_batch")
    write_archive(data_folder / "cifar10", {"cifar-10-batches-bin/test_batch.bin": archived.tobytes()})
    assert np.array_equal(cifar10_batch("test_batch")[1], archived[:, 0])
    assert path.stat().st_size == 27657, "what is damaged is the user's to remove"
