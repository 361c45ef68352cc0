"""MNIST and Fashion-MNIST: small files written here, and the real ones where DOXA_DATA has them."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from doxa.data import Dataset, fashion_mnist, mnist
from doxa.data.formats.idx import read_idx
from doxa.errors import BadInput, BrokenFile

READERS = {"mnist": mnist, "fashion_mnist": fashion_mnist}


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def images(rows: int) -> np.ndarray:
    return (np.arange(rows * 784) % 256).astype(np.uint8).reshape(rows, 28, 28)


def labels(rows: int) -> np.ndarray:
    return (np.arange(rows) % 10).astype(np.uint8)


@pytest.fixture(params=["mnist", "fashion_mnist"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, made_up: None) -> Path:
    """A folder with a tiny, gzipped copy of the set."""
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    folder = tmp_path / name
    folder.mkdir()
    for part, rows in (("train", 12), ("t10k", 5)):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images(rows))))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels(rows))))
    return folder


def unpack(path: Path) -> None:
    path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    path.unlink()


def in_place(path: Path) -> None:
    path.write_bytes(gzip.decompress(path.read_bytes()))


def as_is(path: Path) -> None:
    pass


@pytest.mark.parametrize("change", [as_is, unpack, in_place])
def test_reads_gzipped_plain_and_misnamed_files(data_folder: Path, name: str, change) -> None:
    for path in list(data_folder.iterdir()):
        change(path)
    read = READERS[name]()
    assert (read.name, read.classes, read.maximum) == (name, 10, 255)
    assert np.array_equal(read.x_train, images(12))
    assert np.array_equal(read.x_test, images(5))
    assert np.array_equal(read.y_train, labels(12))
    assert np.array_equal(read.y_test, labels(5))
    assert read.x_train.dtype == read.x_test.dtype == np.uint8
    assert read.y_train.dtype == read.y_test.dtype == np.int64
    assert read.x_train.flags.writeable


def test_images_are_floats_between_0_and_1_with_a_channel(data_folder: Path, name: str) -> None:
    train, test = READERS[name]().images()
    assert train.shape == (12, 1, 28, 28)
    assert test.shape == (5, 1, 28, 28)
    assert train.dtype == test.dtype == np.float32
    assert train.min() == 0.0
    assert train.max() == 1.0
    assert np.allclose(train[:, 0] * 255, images(12), atol=1e-4)


@pytest.mark.parametrize(
    "stem",
    [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    ],
)
def test_missing_file_is_named_with_its_place_and_source(data_folder: Path, name: str, stem: str) -> None:
    path = data_folder / f"{stem}.gz"
    path.unlink()
    with pytest.raises(BadInput) as caught:
        READERS[name]()
    message = str(caught.value)
    assert message.startswith(f"the file {path} (or {data_folder / stem}) is missing; put it there, from https://")


def test_missing_set_names_its_first_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    with pytest.raises(BadInput, match=r"mnist/train-images-idx3-ubyte\.gz"):
        mnist()


WHOLE = idx(images(2))
PACKED = gzip.compress(WHOLE)

BROKEN = {
    "gzip cut short": (PACKED[: len(PACKED) // 2], "does not unpack"),
    "gzip without its end": (PACKED[:-4], "does not unpack"),
    "gzip with a flipped byte": (PACKED[:40] + bytes([PACKED[40] ^ 255]) + PACKED[41:], "does not unpack"),
    "empty": (b"", "begins with nothing"),
    "a web page": (b"<!DOCTYPE html><html>", "begins with 3c 21 44 4f"),
    "two bytes": (b"\0\0", "begins with 00 00"),
    "floats": (WHOLE[:2] + b"\x0d" + WHOLE[3:], "type code 13, expected 8"),
    "labels in place of images": (idx(labels(2)), "1 axes, expected 3"),
    "header cut short": (WHOLE[:10], "ends after 10 bytes, within its header of 16"),
    "other images": (idx(np.zeros((2, 32, 32), np.uint8)), r"shape \(32, 32\), expected \(28, 28\)"),
    "one byte short": (WHOLE[:-1], "1583 bytes unpacked, expected 1584"),
    "one byte long": (WHOLE + b"\0", "1585 bytes unpacked, expected 1584"),
    "absurd length": (WHOLE[:4] + b"\xff" * 4 + WHOLE[8:], "1584 bytes unpacked, expected 3367254359296"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_file_is_refused_by_name(tmp_path: Path, case: str) -> None:
    raw, message = BROKEN[case]
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(raw)
    with pytest.raises(BrokenFile, match=message) as caught:
        read_idx(path, (28, 28))
    assert str(caught.value).startswith(str(path))
    assert "get a fresh copy" in str(caught.value)


def test_unreadable_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="cannot be read"):
        read_idx(tmp_path, (28, 28))


def test_labels_that_do_not_fit_the_images_are_refused(data_folder: Path, name: str) -> None:
    path = data_folder / "train-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(idx(labels(11))))
    with pytest.raises(
        BrokenFile, match=r"train-labels-idx1-ubyte\.gz holds labels of shape \(11,\), expected \(12,\)"
    ):
        READERS[name]()
    path.write_bytes(gzip.compress(idx(np.full(12, 10, np.uint8))))
    with pytest.raises(BrokenFile, match="holds the label 10, expected 0 to 9"):
        READERS[name]()


REAL = {
    "mnist": {
        "first": [5, 0, 4, 1, 9],
        "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        "mean": 0.1307,
        "sd": 0.3081,
    },
    "fashion_mnist": {
        "first": [9, 0, 0, 3, 0],
        "train": [6000] * 10,
        "test": [1000] * 10,
        "mean": 0.2860,
        "sd": 0.3530,
    },
}


def test_real_files_are_the_published_ones(name: str, loads: Callable[[str], Dataset]) -> None:
    read, expected = loads(name), REAL[name]
    assert read.x_train.shape == (60_000, 28, 28)
    assert read.x_test.shape == (10_000, 28, 28)
    assert read.y_train[:5].tolist() == expected["first"]
    assert np.bincount(read.y_train).tolist() == expected["train"]
    assert np.bincount(read.y_test).tolist() == expected["test"]
    shares, greys = np.bincount(read.x_train.ravel(), minlength=256) / read.x_train.size, np.arange(256) / 255
    mean = shares @ greys
    assert mean == pytest.approx(expected["mean"], abs=1e-4)
    assert (shares @ (greys - mean) ** 2) ** 0.5 == pytest.approx(expected["sd"], abs=1e-4)
