"""What never ends, never begins or is no text is refused in words, with the limit and the file; big tables are read."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from doxa.errors import BadInput
from doxa.storage.source import require_readable
from doxa.tables import Numbers, Words, csv, read

module = import_module("doxa.tables.read")  # by its name in the package it is the function


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "MAX_ROW", 1_000)
    monkeypatch.setattr(csv, "BLOCK", 100)
    monkeypatch.setattr(csv, "MAX_COLUMNS", 20)


@pytest.fixture
def pipe() -> Iterator[tuple[str, int]]:
    """A pipe as a shell hands it over: what it is read as, and where it is written."""
    reading, writing = os.pipe()
    yield f"/dev/fd/{reading}", writing
    os.close(reading)


def test_a_device_that_never_ends_is_refused() -> None:
    with pytest.raises(BadInput, match="/dev/zero is a device; expected a CSV or parquet file"):
        read("/dev/zero")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_fifo_that_nobody_writes_to_is_refused(tmp_path: Path, suffix: str) -> None:
    fifo = tmp_path / f"rows.{suffix}"
    os.mkfifo(fifo)
    with pytest.raises(BadInput, match="is a named pipe; expected a CSV or parquet file, or /dev/stdin"):
        read(fifo)


def test_a_pipe_that_was_handed_over_is_read(pipe: tuple[str, int]) -> None:
    name, writing = pipe
    with open(writing, "w") as file:
        file.write("a,b\n1,x\n2,y\n")
    assert list(read(name).columns) == ["a", "b"]


def test_links_to_a_pipe_that_was_handed_over_are_followed(tmp_path: Path, pipe: tuple[str, int]) -> None:
    name, writing = pipe
    (tmp_path / "one").symlink_to(name)
    (tmp_path / "rows.csv").symlink_to("one")
    (tmp_path / "folder").symlink_to(Path(name).parent)
    require_readable(tmp_path / "folder" / Path(name).name, "a table")
    with open(writing, "w") as file:
        file.write("a,b\n1,x\n2,y\n")
    assert list(read(tmp_path / "rows.csv").columns) == ["a", "b"]


def test_links_to_other_pipes_and_round_in_circles_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link.csv").symlink_to("fifo")
    with pytest.raises(BadInput, match="is a named pipe"):
        read(tmp_path / "link.csv")
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    with pytest.raises(BadInput, match="cannot be read"):
        read(tmp_path / "circle.csv")


@pytest.mark.parametrize(
    ("endless", "expected"),
    [
        (b"a,a,", "the first line of .* is longer than 1,000 characters"),
        (b"x\n1,1,1,", "a row after line 1 of .* is longer than 1,000 characters"),
        (b'x\n"yyyy', "a row after line 1 of .* is longer than 1,000 characters"),
        (b'a,b\n1,"\n","', "a row after line .* is longer than 1,000 characters"),
    ],
)
@pytest.mark.usefixtures("small_limits")
def test_a_line_without_an_end_is_refused_as_it_comes(pipe: tuple[str, int], endless: bytes, expected: str) -> None:
    name, writing = pipe

    def write() -> None:
        with suppress(BrokenPipeError), open(writing, "wb", buffering=0) as file:
            file.write(endless)
            while True:
                file.write(10 * endless[-4:])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(BadInput, match=expected):
        read(name)
    os.dup2(os.open(os.devnull, os.O_RDONLY), int(Path(name).name))  # nobody reads it any more
    writer.join(10)
    assert not writer.is_alive()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 2**16])
def test_lines_end_alike_wherever_a_block_does(
    path: Path, monkeypatch: pytest.MonkeyPatch, end: str, block: int
) -> None:
    monkeypatch.setattr(csv, "BLOCK", block)
    path.write_text(end.join(["a,b", "1,x", "", f'2,"y{end}z"', "3,v\u2028w"]), encoding="utf-8", newline="")
    a, b = read(path).columns.values()
    assert isinstance(a, Numbers)
    assert isinstance(b, Words)
    assert a.values.tolist() == [1, 2, 3]
    assert b.levels == ("x", f"y{end}z", "v\u2028w")


@pytest.mark.usefixtures("small_limits")
def test_too_many_columns(path: Path) -> None:
    path.write_text(",".join(f"c{i}" for i in range(21)) + "\n")
    with pytest.raises(BadInput, match=r"rows\.csv has 21 columns; at most 20 can be read"):
        read(path)


def test_many_columns_are_well(path: Path) -> None:
    path.write_text(",".join(f"c{i}" for i in range(120_000)) + "\n")
    with pytest.raises(BadInput, match="names its columns but has no rows"):  # which it comes to after the columns
        read(path)


def test_a_nul_is_no_letter(path: Path) -> None:
    for content, row in ((b"a\0,b\n1,2\n", 1), (b"a,b\n1,2\n1\0,2\n", 3), (b"a,b\n1,2\nx,\0\n", 3)):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=rf"rows\.csv holds a NUL character in line {row}.*utf-16"):
            read(path)


def test_a_name_with_a_nul_or_half_a_character_is_no_file() -> None:
    for name in ("a\0b.csv", "a\ud800.csv"):
        with pytest.raises(BadInput, match="is no name of a file"):
            read(name)


def test_a_name_that_is_no_utf_8_is_read_and_told_in_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.csv")
    (tmp_path / name).write_text("a,b\n1,x\n")
    table = read(tmp_path / name)
    assert table.name.encode("utf-8").decode() == "caf�.csv"


def test_long_texts_take_as_much_memory_as_they_have_letters(path: Path) -> None:
    import tracemalloc

    path.write_text("a,b\n" + 4_000 * "1,x\n" + f"2,{50_000 * 'y'}\n")
    tracemalloc.start()
    try:
        column = read(path).columns["b"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(column, Words)
    assert column.distinct == 2
    assert peak < 2**24


def test_a_wide_table_is_read_in_smaller_pieces_to_the_same_columns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 9, (30, 40))
    path.write_text(
        ",".join(f"c{i}" for i in range(40)) + "\n" + "\n".join(",".join(map(str, row)) for row in values) + "\n"
    )
    whole = read(path)
    monkeypatch.setattr(csv, "CHUNK_CELLS", 80)
    counts: list[int] = []
    pieces = read(path, say=counts.append)
    assert counts == list(range(2, 31, 2))
    monkeypatch.setattr(csv, "CHUNK_CELLS", 10**9)
    monkeypatch.setattr(csv, "CHUNK_CHARACTERS", 100)
    letters = read(path)
    for name, column in whole.columns.items():
        for other in (pieces.columns[name], letters.columns[name]):
            assert isinstance(column, Numbers)
            assert isinstance(other, Numbers)
            np.testing.assert_array_equal(column.values, other.values)


@pytest.mark.parametrize("error", [KeyError("pandas_type"), TypeError("data type 'int&4' not understood")])
def test_a_parquet_file_whose_reader_fails_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")

    def fail(*_: object, **__: object) -> None:
        raise error

    path = path.with_suffix(".parquet")
    pandas.DataFrame({"a": [1, 2]}).to_parquet(path)
    monkeypatch.setattr(pandas, "read_parquet", fail)
    with pytest.raises(BadInput, match=r"cannot be read as parquet: .*(pandas_type|int&4)"):
        read(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(BadInput, match="cannot be read as parquet"):
        read(path)


def test_a_parquet_file_that_unpacks_to_more_than_memory_is_refused_before(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = path.with_suffix(".parquet")
    zeros, rows, groups = np.zeros(2**20, np.int64), 2**20, 12
    with parquet.ParquetWriter(path, arrow.schema([("a", arrow.int64()), ("b", arrow.int64())])) as writer:
        for _ in range(groups):
            writer.write_table(arrow.table({"a": zeros, "b": zeros}))
    assert path.stat().st_size < 2**17
    monkeypatch.setattr(module, "MAX_CELLS", 2 * groups * rows - 1)
    with monkeypatch.context() as patch:
        patch.setattr("pandas.read_parquet", None)  # it is not come to
        with pytest.raises(BadInput, match=r"12,582,912 rows of 2 columns, more than the 25,165,823 cells"):
            read(path)
    monkeypatch.setattr(module, "MAX_COLUMNS", 1)
    with pytest.raises(BadInput, match="has 2 columns; at most 1 can be read"):
        read(path)


def test_a_parquet_file_within_its_bounds_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = path.with_suffix(".parquet")
    pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_parquet(path)
    monkeypatch.setattr(module, "MAX_CELLS", 4)
    assert list(read(path).columns) == ["a", "b"]
