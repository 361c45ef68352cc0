"""Tables: what is read is what was written; what a net gets is what scikit-learn would give it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from doxa.errors import BadInput, BrokenFile
from doxa.tables import Familiarity, Numbers, Preparation, Table, Words, read, split_trainable_target
from doxa.tables.csv import delimiter

TEXT = """size,town,price
40.5,Ghent,100
,Rio,200
61,,NA
72,Ghent,?
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    csv_path = tmp_path / "houses.csv"
    csv_path.write_text(TEXT)
    return csv_path


def words(column: Words) -> list[str | None]:
    return [None if c < 0 else column.levels[c] for c in column.codes]


def test_a_file_is_read_as_it_was_written(path: Path) -> None:
    table = read(path)
    assert list(table.columns) == ["size", "town", "price"]
    assert len(table) == 4
    size, town, price = table.columns.values()
    assert isinstance(size, Numbers)
    np.testing.assert_array_equal(size.values, [40.5, np.nan, 61, 72])
    assert isinstance(town, Words)
    assert words(town) == ["Ghent", "Rio", None, "Ghent"]
    assert isinstance(price, Numbers)
    np.testing.assert_array_equal(price.missing, [False, False, True, True])


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_any_usual_delimiter_is_found(mark: str, path: Path) -> None:
    path.write_text(TEXT.replace(",", mark))
    assert list(read(path).columns) == ["size", "town", "price"]
    assert delimiter(f'"a{mark * 5}b";c' if mark != ";" else '"a,,,b";c') == ";"


def test_quoted_cells_and_strange_names_survive(path: Path) -> None:
    path.write_text('"<script>alert(1)</script>","a, ""b""",😀\n"x\ny",1,2\n"x\ny",3,4\n', encoding="utf-8")
    table = read(path)
    assert list(table.columns) == ["<script>alert(1)</script>", 'a, "b"', "😀"]
    first = table.columns["<script>alert(1)</script>"]
    assert isinstance(first, Words)
    assert words(first) == ["x\ny", "x\ny"]


def test_a_column_that_turns_to_words_late_is_words_from_the_start(path: Path) -> None:
    lines = [f"{i},1" for i in range(12_000)] + ["one,1"] + ["7,2"]
    path.write_text("a,b\n" + "\n".join(lines))
    column = read(path).columns["a"]
    assert isinstance(column, Words)
    assert words(column)[:2] == ["0", "1"]
    assert words(column)[-2:] == ["one", "7"]


def test_a_byte_order_mark_is_no_letter(path: Path) -> None:
    path.write_text(TEXT, encoding="utf-8-sig")
    assert next(iter(read(path).columns)) == "size"
    path.write_text(TEXT.replace("Ghent", "Orléans"), encoding="latin-1")
    town = read(path, encoding="latin-1").columns["town"]
    assert isinstance(town, Words)
    assert town.levels[0] == "Orléans"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2\n3\n", "row 3 .* has 1 cells"),
        (b"a,a\n1,2\n", "more than one column named 'a'"),
        (b"a,\n1,2\n", "column 2 .* has no name"),
        (b"a,b\n\xff\xfe,2\n", "is not utf-8 text: byte 0xff"),
        (b'a,b\n"x,2\n', "cannot be read as a table"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_words(content: bytes, message: str, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read(path)


def test_what_is_not_there_is_refused_in_words(tmp_path: Path, path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        read(tmp_path)
    with pytest.raises(BadInput, match="no file"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(BadInput, match="no encoding"):
        read(path, encoding="klingon")
    with pytest.raises(BadInput, match="got int"):
        read(3)
    with pytest.raises(BadInput, match="did you mean 'price'"):
        read(path).column("prise")


def test_mappings_and_frames_are_tables_too() -> None:
    mapped = read({"a": [1, 2], "b": ["x", None]})
    assert isinstance(mapped.columns["a"], Numbers)
    assert isinstance(mapped.columns["b"], Words)
    assert words(mapped.columns["b"]) == ["x", None]
    with pytest.raises(BadInput, match="one length"):
        read({"a": [1], "b": [1, 2]})
    pandas = pytest.importorskip("pandas")
    when = pandas.to_datetime(["2020-01-01", "2020-01-03", None])
    frame = pandas.DataFrame({"a": [1.0, None, 3], "b": ["x", None, "y"], "c": when, "d": [True, False, True]})
    frame["e"] = pandas.Series(["u", "v", "u"], dtype="category")
    table = read(frame)
    np.testing.assert_array_equal(table.columns["a"].values, [1, np.nan, 3])
    np.testing.assert_array_equal(table.columns["c"].values, [18262, 18264, np.nan])  # days since 1970
    assert words(table.columns["b"]) == ["x", None, "y"]
    assert words(table.columns["d"]) == ["True", "False", "True"]
    assert words(table.columns["e"]) == ["u", "v", "u"]


def test_parquet_is_read_where_it_can_be(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).to_parquet(tmp_path / "t.parquet")
    assert list(read(tmp_path / "t.parquet").columns) == ["a", "b"]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(BadInput, match="cannot be read as parquet"):
        read(tmp_path / "broken.parquet")


def mixed(rows: int = 300, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(50, 9, rows)
    numbers[rng.random(rows) < 0.2] = np.nan
    codes = rng.integers(-1, 4, rows)
    return Table(
        "mixed", {"n": Numbers(numbers), "m": Numbers(rng.normal(size=rows)), "w": Words(codes, tuple("abcd"))}
    )


def test_a_preparation_does_what_scikit_learn_does() -> None:
    table = mixed()
    x, new = Preparation.fit(table).apply(table)
    n, m, w = table.columns["n"], table.columns["m"], table.columns["w"]
    assert isinstance(n, Numbers)
    assert isinstance(m, Numbers)
    assert isinstance(w, Words)
    filled = SimpleImputer(strategy="median", add_indicator=True).fit_transform(n.values[:, None])
    expected = StandardScaler().fit_transform(filled[:, :1])
    np.testing.assert_allclose(x[:, :1], expected, atol=1e-5)
    np.testing.assert_array_equal(x[:, 1], filled[:, 1])
    np.testing.assert_allclose(x[:, 2], StandardScaler().fit_transform(m.values[:, None])[:, 0], atol=1e-5)
    hot = OneHotEncoder(categories=[[-1, 0, 1, 2, 3]], sparse_output=False).fit_transform(w.codes[:, None])
    np.testing.assert_array_equal(x[:, 3:7], hot[:, 1:])
    np.testing.assert_array_equal(x[:, 7], hot[:, 0])
    assert not new


def test_a_preparation_survives_the_disk() -> None:
    table = mixed()
    before = Preparation.fit(table)
    after = Preparation.from_state(json.loads(json.dumps(before.state())))
    assert after == before
    np.testing.assert_array_equal(after.apply(mixed(seed=1))[0], before.apply(mixed(seed=1))[0])
    for broken in ({}, {"steps": [{"kind": "magic"}], "dropped": {}}, {"steps": [{"kind": "scaled"}], "dropped": {}}):
        with pytest.raises(BrokenFile):
            Preparation.from_state(broken)


def test_rare_and_new_words_share_a_column_and_are_told() -> None:
    rng = np.random.default_rng(0)
    frequent = rng.integers(0, 55, 4000)
    names = tuple(f"level {i}" for i in range(55))
    preparation = Preparation.fit(Table("t", {"w": Words(frequent, names)}))
    (step,) = preparation.steps
    assert step.width == 50
    assert len(step.rare) == 6  # type: ignore[union-attr]
    column = Words(np.array([0, 1, 2, -1]), (step.levels[3], step.rare[2], "never seen"))  # type: ignore[union-attr]
    x, new = preparation.apply(Table("t", {"w": column}))
    assert x.argmax(1).tolist()[:3] == [3, 49, 49]
    assert x[3].sum() == 0
    assert new["w"].tolist() == [False, False, True, True]


def test_useless_columns_are_left_out_and_said() -> None:
    rows = 200
    identifiers = Words(np.arange(rows), tuple(f"id {i}" for i in range(rows)))
    table = Table("t", {"id": identifiers, "gone": Numbers(np.full(rows, np.nan)), "x": Numbers(np.arange(rows) * 1.0)})
    preparation = Preparation.fit(table)
    assert preparation.names == ["x"]
    assert set(preparation.dropped) == {"id", "gone"}
    with pytest.raises(BadInput, match="no column to learn from"):
        Preparation.fit(table.without("x"))
    with pytest.raises(BadInput, match="infinite in row 3"):
        Preparation.fit(Table("t", {"x": Numbers(np.array([1.0, 2.0, np.inf]))}))


def test_columns_that_changed_are_refused_in_words() -> None:
    preparation = Preparation.fit(mixed())
    with pytest.raises(BadInput, match="lacks the column 'm'"):
        preparation.apply(mixed().without("m"))
    table = mixed()
    changed = Table("t", {**table.columns, "m": Words(np.zeros(300, np.int64), ("one",))})
    with pytest.raises(BadInput, match=r"holds words, e\.g\. 'one'"):
        preparation.apply(changed)
    numbered = Table("t", {**table.columns, "w": Numbers(np.arange(300) * 1.0)})
    assert preparation.apply(numbered)[1]["w"].all(), "numbers where words were are new words"


@pytest.mark.parametrize(
    ("column", "task", "classes"),
    [
        (Numbers(np.linspace(0, 1, 40)), "regression", ()),
        (Numbers(np.arange(40) % 3 * 1.0), "classification", ("0", "1", "2")),
        (Numbers(np.arange(40) * 1.0), "regression", ()),
        (Words(np.arange(40) % 2, ("no", "yes")), "classification", ("no", "yes")),
        (Words(np.arange(40) % 2, ("yes", "no")), "classification", ("no", "yes")),
    ],
)
def test_the_task_is_found(column: Numbers | Words, task: str, classes: tuple[str, ...]) -> None:
    target, y, rest = split_trainable_target(Table("t", {"y": column, "x": Numbers(np.zeros(40))}), "y")
    assert (target.task, target.classes) == (task, classes)
    assert list(rest.columns) == ["x"]
    if classes and isinstance(column, Words):
        assert [classes[i] for i in y] == words(column)


def test_rows_without_a_target_are_left_out() -> None:
    values = np.arange(40) * 1.5
    values[::4] = np.nan
    _, y, rest = split_trainable_target(Table("t", {"y": Numbers(values), "x": Numbers(np.arange(40) * 1.0)}), "y")
    assert len(y) == len(rest) == 30
    np.testing.assert_array_equal(y, rest.columns["x"].values * 1.5)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("column", "task", "message"),
    [
        (Numbers(np.full(40, np.nan)), None, "missing in every row"),
        (Numbers(np.full(40, 2.5)), None, "same in every row"),
        (Words(np.zeros(40, np.int64), ("a",)), None, "only the class 'a'"),
        (Words(np.arange(40), tuple(map(str, range(40)))), None, "40 classes in 40 rows"),
        (Words(np.arange(40) % 2, ("a", "b")), "regression", "holds words"),
        (Numbers(np.arange(40) / 7), "magic", "task must be"),
        (Numbers(np.where(np.arange(40) == 3, np.inf, 0.5)), "regression", "infinite"),
    ],
)
def test_a_target_that_cannot_be_learned_is_refused_in_words(column: Numbers | Words, task: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        split_trainable_target(Table("t", {"y": column, "x": Numbers(np.zeros(40))}), "y", task)


def test_far_rows_are_unlike_and_near_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(5, 5))
    x = (rng.normal(size=(3000, 5)) @ mixing).astype(np.float32)
    familiarity = Familiarity.fit(x)
    fresh = (rng.normal(size=(3000, 5)) @ mixing).astype(np.float32)
    assert familiarity.unlike(fresh).mean() < 0.005
    assert familiarity.unlike(8 * fresh).mean() > 0.9
    # A row may be far in a direction in which no single column is: the correlation tells.
    _, axes = np.linalg.eigh(np.cov(x.T))
    outlier = (8 * np.sqrt(np.linalg.eigvalsh(np.cov(x.T))[0]) * axes[:, 0]).astype(np.float32)
    assert familiarity.unlike(outlier[None])[0]
    assert np.abs(outlier).max() < np.abs(x).max()
    loaded = Familiarity.from_state(familiarity.state())
    np.testing.assert_array_equal(loaded.unlike(fresh), familiarity.unlike(fresh))


def test_constant_and_doubled_columns_do_not_break_the_distance() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3)).astype(np.float32)
    x = np.concatenate([x, x[:, :1], np.ones((50, 1), np.float32)], 1)
    familiarity = Familiarity.fit(x)
    assert np.isfinite(familiarity.limit)
    assert not familiarity.unlike(x).any()
