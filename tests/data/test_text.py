"""Tables as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from doxa.data.formats.text import encode_letters, parse_numbers, read_cells
from doxa.errors import BrokenFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "table.data"


def test_cells_are_found_whatever_the_line_ends_and_blank_lines(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf1, 2.5\r\n\r\n-3,4e-1\n\n")
    assert read_cells(file, columns=2, rows=2) == [["1", "2.5"], ["-3", "4e-1"]]
    assert parse_numbers(file, read_cells(file, columns=2, rows=2)).tolist() == [[1, 2.5], [-3, 0.4]]


def test_any_blanks_separate_when_asked(file: Path) -> None:
    file.write_text("  1.0 \t2.0 \n3.0    4.0 \t\n")
    assert read_cells(file, columns=2, rows=2, separator=None) == [["1.0", "2.0"], ["3.0", "4.0"]]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "it has 0 rows, expected 2"),
        (b"1,2\n", "it has 1 rows, expected 2"),
        (b"1,2\n3,4\n5,6\n", "it has 3 rows, expected 2"),
        (b"1,2\n\n3\n", "line 3 has 1 columns, expected 2"),
        (b"1,2\n3,4,5\n", "line 2 has 3 columns, expected 2"),
        (b"<!DOCTYPE html>\n<html>", "line 1 has 1 columns, expected 2"),
        (b"1,2\n3,\xff4\n", "no text, from byte 6 on"),
    ],
)
def test_wrong_shape_is_refused_by_name(file: Path, raw: bytes, message: str) -> None:
    file.write_bytes(raw)
    with pytest.raises(BrokenFile, match=message) as caught:
        read_cells(file, columns=2, rows=2)
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith("get a fresh copy of it")


@pytest.mark.parametrize("cell", ["x", "", "?", "nan", "inf", "1;2"])
def test_what_is_no_number_is_shown_with_its_place(file: Path, cell: str) -> None:
    with pytest.raises(BrokenFile) as caught:
        parse_numbers(file, [["1", "2"], ["3", cell]])
    assert f"row 2, column 2 holds {cell!r}, expected a number" in str(caught.value)


def test_codes_are_places_among_the_letters(file: Path) -> None:
    codes = encode_letters(file, ["e", "p", "e"], "ep")
    assert codes.dtype == np.int64
    assert codes.tolist() == [0, 1, 0]
    for wrong in ("x", "", "ep"):
        with pytest.raises(BrokenFile, match=f"row 2 holds '{wrong}', expected one of e, p"):
            encode_letters(file, ["e", wrong], "ep")
