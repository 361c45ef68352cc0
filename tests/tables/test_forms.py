"""Numbers are read however people write them, codes stay codes, and a new table is read as the training's was."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doxa.errors import BadInput
from doxa.tables import (
    Numbers,
    Preparation,
    Table,
    Target,
    Words,
    class_labels,
    read,
    split_trainable_target,
    target_values,
)
from doxa.tables.forms import format_day, parse_decimal_comma, parse_iso_date, parse_thousands
from doxa.tables.table import as_words


def table_of(path: Path, text: str) -> Table:
    path.write_text(text, encoding="utf-8")
    return read(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.csv"


def values(table: Table, name: str) -> list[float]:
    column = table.columns[name]
    assert isinstance(column, Numbers), f"{name} was read as words"
    return column.values.tolist()


def words(table: Table, name: str) -> list[str | None]:
    column = table.columns[name]
    assert isinstance(column, Words), f"{name} was read as numbers"
    return [None if c < 0 else column.levels[c] for c in column.codes]


@pytest.mark.parametrize(
    ("text", "comma", "grouped"),
    [
        ("1,5", 1.5, None),
        ("-0,25", -0.25, None),
        (",5", 0.5, None),
        ("1.234,5", 1234.5, None),
        ("1.234.567", 1234567, None),
        ("1,500", 1.5, 1500),
        ("-1,234,567.5", None, -1234567.5),
        ("12,34", 12.34, None),
        ("1.5", None, 1.5),
        ("2,5e3", 2500, None),
        ("", None, None),
        ("a", None, None),
    ],
)
def test_commas_are_read_as_what_they_mark(text: str, comma: float | None, grouped: float | None) -> None:
    assert parse_decimal_comma(text) == comma
    assert parse_thousands(text) == grouped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01", 0),
        ("2020-01-03", 18264),
        ("1969-12-31T12:00", -0.5),
        ("2020-01-03 06:00:00", 18264.25),
        ("2020-01-03T06:00:00Z", 18264.25),
        ("2020-01-03T06:00:00+06:00", 18264),
        ("2020-02-30", None),
        ("20200103", None),
        ("2020-01", None),
        ("3 January", None),
    ],
)
def test_dates_are_days_since_1970(text: str, expected: float | None) -> None:
    assert parse_iso_date(text) == expected
    if expected is not None:
        assert parse_iso_date(format_day(expected)) == expected


def test_decimal_commas_are_numbers_where_no_comma_parts_the_cells(path: Path) -> None:
    table = table_of(path, "a;b;c\n1,5;x,y;1\n-2;z;2\n;z;3\n1.250,75;z;4\n")
    np.testing.assert_array_equal(values(table, "a"), [1.5, -2, np.nan, 1250.75])
    assert words(table, "b")[0] == "x,y"
    assert table.notes == ("column 'a': written with decimal commas: 1,5 is read as 1.5",)
    quoted = table_of(path, 'a,b\n"1,5",1\n"2,5",2\n')
    assert words(quoted, "a") == ["1,5", "2,5"]


def test_thousands_separators_are_no_words(path: Path) -> None:
    table = table_of(path, 'a,b\n"1,500",1\n750,2\n"2,000,000.5",3\n')
    assert values(table, "a") == [1500, 750, 2000000.5]
    assert "thousands separators" in table.notes[0]
    assert values(table_of(path, "a;b\n1,500,000;1\n2,000;2\n"), "a") == [1_500_000, 2000]


def test_dates_in_text_and_in_frames_are_the_same_numbers(path: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    texts = ["2020-01-01", "2021-06-30", None]
    table = table_of(path, "when,x\n" + "".join(f"{t or ''},{i}\n" for i, t in enumerate(texts)))
    frame = pandas.DataFrame({"when": pandas.to_datetime(texts), "x": [0, 1, 2]})
    frame.to_parquet(tmp_path / "t.parquet")
    zoned = frame.assign(when=frame["when"].dt.tz_localize("Europe/Brussels").dt.tz_convert("UTC"))
    for source in (frame, tmp_path / "t.parquet", {"when": texts}, {"when": frame["when"].to_numpy()}):
        np.testing.assert_array_equal(values(read(source), "when"), values(table, "when"))
        assert "days since 1970" in read(source).notes[0]
    np.testing.assert_allclose(values(read(zoned), "when")[0], 18262 - 1 / 24)
    assert "days since 1970" in table.notes[0]
    assert words(table_of(path, "when,x\n2020-01-01,1\nsoon,2\n"), "when") == ["2020-01-01", "soon"]


def test_what_frames_hold_besides_floats_is_numbers_too(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {
            "money": [Decimal("1.25"), None, Decimal("3")],
            "day": [datetime.date(1970, 1, 2), None, datetime.date(1971, 1, 1)],
            "wait": pandas.to_timedelta([6, 12, None], unit="h"),
            "count": pandas.array([1, None, 3], dtype="Int64"),
            "truth": [True, False, True],
            "kind": pandas.Series(["2020-01-01", "2020-01-02", None], dtype="category"),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (read(frame), read(tmp_path / "t.parquet"), read(frame.convert_dtypes(dtype_backend="pyarrow"))):
        np.testing.assert_array_equal(values(table, "money"), [1.25, np.nan, 3])
        np.testing.assert_array_equal(values(table, "day"), [1, np.nan, 365])
        np.testing.assert_array_equal(values(table, "wait"), [0.25, 0.5, np.nan])
        np.testing.assert_array_equal(values(table, "count"), [1, np.nan, 3])
        assert words(table, "truth") == ["True", "False", "True"]
    assert words(read(frame), "kind")[0] == "2020-01-01"


def test_digits_that_begin_with_a_zero_are_words(path: Path) -> None:
    table = table_of(path, "zip,hour,x,y\n01234,00,0.5,0\n10115,13,010,1\n")
    assert words(table, "zip") == ["01234", "10115"]
    assert words(table, "hour") == ["00", "13"]
    assert values(table, "x") == [0.5, 10]
    assert values(table, "y") == [0, 1]
    assert table.notes == ("columns 'zip', 'hour': digits with leading zeros: taken as words",)
    many = table_of(path, "zip,x\n" + "1234,1\n" * 12_000 + "01234,1\n")
    assert words(many, "zip")[-2:] == ["1234", "01234"]


def test_a_column_of_words_is_read_as_words_again(path: Path) -> None:
    preparation = Preparation.fit(table_of(path, "zip,x\n" + "01234,1\n02345,2\n12345,3\nAB12,4\n" * 3))
    x, new = preparation.apply(table_of(path, "zip,x\n12345,1\n12345,2\n"))
    assert x[:, :4].tolist() == [[0, 0, 1, 0]] * 2
    assert not new
    assert not preparation.apply(table_of(path, "zip,x\n01234,1\n02345,2\n"))[1]
    assert preparation.apply(table_of(path, "zip,x\n1234,1\n"))[1]["zip"].all(), "1234 is another code than 01234"


NEW: list[tuple[str, str, str, float | str]] = [
    # training, a new table, what the column then is
    ("a;x\n1,5;1\n2,25;2\n", "decimal comma", "a;x\n1.500;1\n", 1500),
    ("a;x\n1,5;1\n2,25;2\n", "decimal comma", "a,x\n1.500,1\n", 1.5),
    ("a;x\n1,5;1\n2,25;2\n", "decimal comma", 'a,x\n"1,250",1\n', 1.25),
    ("a;x\n1,5;1\n2,25;2\n", "decimal comma", "a;x\n7;1\n", 7),
    ('a,x\n"1,500",1\n2,2\n', "thousands", "a;x\n1,250;1\n", 1250),
    ('a,x\n"1,500",1\n2,2\n', "thousands", "a,x\n7.5,1\n", 7.5),
    ('a,x\n"1,500",1\n2,2\n', "thousands", "a;x\n1,5;1\n", "'1,5'; it was learned as numbers with thousands"),
    ("a,x\n1.5,1\n2,2\n", "number", "a;x\n1,5;1\n", 1.5),
    ("a,x\n1.5,1\n2,2\n", "number", "a,x\n007,1\n", 7),
    ("a,x\n1.5,1\n2,2\n", "number", "a,x\n2020-01-01,1\n", "holds dates; it was learned as numbers"),
    ("a,x\n1.5,1\n2,2\n", "number", "a,x\n2,1\nsome,2\n", "holds words, e.g. 'some'"),
    ("a,x\n2020-01-01,1\n2020-01-02,2\n", "date", "a,x\n1970-01-08,1\n", 7),
    ("a,x\n2020-01-01,1\n2020-01-02,2\n", "date", "a,x\n18262,1\n", "holds numbers, e.g. '18262'; it was learned as"),
    ("a,x\n2020-01-01,1\n2020-01-02,2\n", "date", "a,x\n2020-01-01,1\nlater,2\n", "e.g. 'later'"),
    ("a,x\n2020-01-01,1\n2020-01-02,2\n", "date", "a,x\n,1\n", float("nan")),
]


@pytest.mark.parametrize(("training", "form", "new", "expected"), NEW)
def test_a_new_table_is_read_as_the_training_was(
    training: str, form: str, new: str, expected: float | str, path: Path
) -> None:
    preparation = Preparation.fit(table_of(path, training))
    preparation = Preparation.from_state(preparation.state())
    step: Any = preparation.steps[0]
    assert step.form == form
    table = table_of(path, new)
    if isinstance(expected, str):
        with pytest.raises(BadInput, match=expected):
            preparation.apply(table)
        return
    x, _ = preparation.apply(table)
    value = step.median if np.isnan(expected) else expected
    np.testing.assert_allclose(x[0, 0], (value - step.mean) / step.scale, rtol=1e-6)
    if not np.isnan(expected):
        y, rest = target_values(table, Target("a", "regression", form=form))
        assert y[0] == expected
        assert list(rest.columns) == ["x"]


def test_what_is_newly_assumed_of_a_new_table_is_said(path: Path) -> None:
    plain = Preparation.fit(table_of(path, "a,x\n1.5,1\n2,2\n"))
    assert "decimal commas" in plain.assumption_notes(table_of(path, "a;x\n1,5;1\n"))[0]
    assert not plain.assumption_notes(table_of(path, "a,x\n1.5,1\n"))
    with_commas = Preparation.fit(table_of(path, "a;x\n1,5;1\n2;2\n"))
    assert not with_commas.assumption_notes(table_of(path, "a;x\n1,5;1\n")), "as in training: nothing new"


def test_classes_are_named_as_the_table_names_them(path: Path) -> None:
    rows = [("000", "1.0", "12"), ("001", "2.0", "7")] * 10
    table = table_of(path, "a,b,c,x\n" + "".join(f"{a},{b},{c},{i}\n" for i, (a, b, c) in enumerate(rows)))
    for name, classes in (("a", ("000", "001")), ("b", ("1.0", "2.0")), ("c", ("7", "12"))):
        target, y, _ = split_trainable_target(table, name)
        assert target.classes == classes
        again, _ = class_labels(table, target)
        np.testing.assert_array_equal(again, y)
    floats = read({"b": [2.0, 1.0, np.nan], "x": [1, 2, 3]})
    target = Target("b", "classification", ("1", "2"))
    assert class_labels(floats, target)[0].tolist() == [1, 0], "1.0 is 1"
    with pytest.raises(BadInput, match="a class that training never had: '3'"):
        class_labels(read({"b": [3]}), target)
    with pytest.raises(BadInput, match="never had: '1'"):
        class_labels(read({"b": [1]}), Target("b", "classification", ("01", "001")))


def test_long_numbers_are_as_many_classes_as_there_are(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    ids = [1234567890123456700, 1234567890123456701] * 10
    expected = ("1234567890123456700", "1234567890123456701")
    text = table_of(path, "y,x\n" + "".join(f"{v},{i}\n" for i, v in enumerate(ids)))
    gaps = pandas.DataFrame({"y": pandas.array([*ids, None], dtype="Int64"), "x": range(21)})
    for table in (text, read({"y": ids, "x": range(20)}), read(gaps)):
        target, y, _ = split_trainable_target(table, "y")
        assert target.classes == expected
        assert y.tolist() == [0, 1] * 10
        np.testing.assert_array_equal(class_labels(table, target)[0], y)


def test_words_are_counted_in_the_rows_that_are_chosen() -> None:
    column = Words(np.arange(100), tuple(map(str, range(100))))
    table = Table("t", {"w": column, "x": Numbers(np.arange(100.0))})
    assert table.rows(np.arange(100) < 3).columns["w"].distinct == 3
    # Forty words in the hundred rows to learn from, though the others have a hundred more.
    codes = np.concatenate([np.arange(100) % 40, np.arange(40, 140)])
    all_rows = Table("t", {"w": Words(codes, tuple(map(str, range(140)))), "x": Numbers(np.arange(200.0))})
    preparation = Preparation.fit(all_rows.rows(np.arange(200) < 100))
    assert preparation.names == ["w", "x"]


def test_columns_without_a_name_that_say_nothing_are_left_out(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5, 2.5, 3.5], "b": ["x", "y", "x"]})
    for some in (frame, frame.iloc[[2, 0]]):
        some.to_csv(path)
        table = read(path)
        assert list(table.columns) == ["a", "b"]
        assert table.notes == ("column 1 has no name and numbers the rows: it is left out",)
    table = table_of(path, "a,b,\n1,2,\n3,4,\n")
    assert list(table.columns) == ["a", "b"]
    assert "column 3 has no name and is empty" in table.notes[0]
    assert list(table_of(path, "a,,b,\n1,,2,\n").columns) == ["a", "b"]
    for text in ("a,b,\n1,2,5\n3,4,6\n", ",a\nx,1\ny,2\n", ",a\n1,1\n1,2\n", ",a\n0.5,1\n1.5,2\n"):
        with pytest.raises(BadInput, match="has no name; the first line must name"):
            table_of(path, text)


def test_blank_lines_before_the_names_are_skipped(path: Path) -> None:
    table = table_of(path, "\n  \r\n\na;b\n1;2\n\n3;4\n")
    assert values(table, "a") == [1, 3]
    with pytest.raises(BadInput, match=r"row 4 .* has 1 cells"):
        table_of(path, "\na,b\n1,2\n3\n")
    with pytest.raises(BadInput, match="has no rows"):
        table_of(path, "a,b\n\n\n")


def test_text_without_its_byte_order_mark_is_refused_in_words(path: Path) -> None:
    path.write_bytes("a,b\n1,2\n".encode("utf-16-le"))
    with pytest.raises(BadInput, match=r"is not utf-16 text: .*BOM.*utf-16-le"):
        read(path, encoding="utf-16")
    assert values(read(path, encoding="utf-16-le"), "a") == [1]


@pytest.mark.parametrize("value", [1e300, -1e200, np.inf])
def test_numbers_beyond_reach_are_refused_by_the_name_of_their_column(value: float) -> None:
    numbers = np.arange(40.0)
    numbers[7] = value
    with pytest.raises(BadInput, match=r"column 'x' is .* in row 8, beyond ±1e\+100"):
        Preparation.fit(Table("t", {"x": Numbers(numbers)}))
    with pytest.raises(BadInput, match=r"the target 'y' (is infinite|goes up to .*, beyond ±1e\+18)"):
        split_trainable_target(Table("t", {"y": Numbers(numbers), "x": Numbers(np.arange(40.0))}), "y", "regression")
    with pytest.raises(BadInput, match=r"the target 'y' varies by .*, less than 1e-18"):
        split_trainable_target(
            Table("t", {"y": Numbers(np.arange(40.0) * 1e-30), "x": Numbers(np.arange(40.0))}), "y", "regression"
        )


def test_far_inputs_are_held_where_a_net_can_follow() -> None:
    preparation = Preparation.fit(Table("t", {"x": Numbers(np.arange(40.0))}))
    with np.errstate(all="raise"):
        x, new = preparation.apply(Table("t", {"x": Numbers(np.array([1e300, -np.inf, np.inf, 20.0]))}))
    assert x[:3, 0].tolist() == [1e6, -1e6, 1e6]
    assert abs(x[3, 0]) < 1
    assert not new


def test_numbers_without_their_text_are_still_told_apart() -> None:
    column = as_words(Numbers(np.array([0.1, 0.1 + 2**-56, 3.0, np.nan, 2.0**60, 2.0**60 + 256])))
    assert len(column.levels) == 5
    assert column.levels[2] == "3"
