"""What a run learns from: the share held out that was asked for, rows counted first, numbers that can be learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doxa.errors import BadInput
from doxa.runs import Plan, labelled_rows, learn, load_training_data, predict_table

QUICK = Plan(net="mlp:8", kl_weight="0.1", epochs=4, members=1, draws=8)


def rows(count: int = 200) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=count)
    return {"x": x, "y": 3 * x + rng.normal(size=count)}


@pytest.mark.parametrize("share", [0.05, 0.1, 0.25, 1 / 3, 0.4, 0.7, 0.9, 0.95])
def test_as_many_rows_are_held_out_as_were_asked_for(share: float) -> None:
    for count in (137, 200):
        training_data = load_training_data(rows(count), "y", hold_out=share)
        assert len(training_data.train[1]) + len(training_data.test[1]) == count
        assert 0 <= len(training_data.test[1]) - share * count < 1
    kinds = np.repeat(["a", "b", "c"], (100, 60, 40))
    training_data = load_training_data({"x": np.arange(200.0), "y": kinds}, "y", hold_out=share)
    for label, of_it in enumerate((100, 60, 40)):
        assert abs(int((training_data.test[1] == label).sum()) - share * of_it) <= 1


def test_the_seed_decides_which_rows_are_held_out() -> None:
    first, same, other_seed = (load_training_data(rows(), "y", hold_out=0.3, seed=seed).test[0] for seed in (1, 1, 2))
    assert first.equal(same)
    assert not first.equal(other_seed)


def test_some_rows_are_left_to_learn_from() -> None:
    with pytest.raises(BadInput, match=r"holding out 0\.95 of 12 rows leaves 0 to learn from.*lower --hold-out"):
        load_training_data(rows(12), "y", hold_out=0.95)


def test_rows_are_counted_before_classes_are() -> None:
    with pytest.raises(BadInput, match="1 rows with a target; at least 10"):
        load_training_data({"c": ["a"], "x": [1.0], "y": [2]}, "y")


@pytest.mark.parametrize(
    ("column", "message"),
    [("x", r"column 'x' is 1e\+200 in row 6, beyond"), ("y", r"the target 'y' goes up to 1e\+200, beyond")],
)
def test_huge_numbers_are_refused_by_name(column: str, message: str) -> None:
    table = rows()
    table[column][5] = 1e200
    with pytest.raises(BadInput, match=message):
        load_training_data(table, "y")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return learn(load_training_data(rows(), "y"), QUICK, tmp_path_factory.mktemp("runs") / "r", progress=False)


def test_huge_numbers_at_prediction_are_unlike_not_an_error(run: Any) -> None:
    with np.errstate(all="raise"):
        predictions = predict_table(run, {"x": [0.0, 1e300, np.inf, -np.inf]})
    assert predictions["unlike"].tolist() == [False, True, True, True]
    assert all(np.isfinite(predictions[name]).all() for name in ("mean", "std", "lower", "upper"))
    with pytest.raises(BadInput, match="the target 'y' goes up to"):
        labelled_rows(run, {"x": [0.0, 1.0], "y": [1.0, 1e300]})


def dated(path: Path, texts: list[str]) -> Path:
    path.write_text("when,y\n" + "".join(f"{text},{1.5 * i}\n" for i, text in enumerate(texts)))
    return path


def test_a_date_means_the_same_in_any_table(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    when = pandas.date_range("2020-01-01", periods=60, freq="D")
    texts = [str(t.date()) for t in when]
    frame = pandas.DataFrame({"when": when, "y": np.arange(60) * 1.5})
    for name, table in (("text", dated(tmp_path / "t.csv", texts)), ("frame", frame)):
        source = str(table) if isinstance(table, Path) else table
        run = learn(load_training_data(source, "y"), QUICK, tmp_path / name, progress=False)
        all_means = predict_table(run, source)["mean"]
        for later_rows in (str(dated(tmp_path / "some.csv", texts[40:])), frame.iloc[40:], {"when": texts[40:]}):
            np.testing.assert_allclose(predict_table(run, later_rows)["mean"], all_means[40:], rtol=1e-5)


def test_codes_and_labels_survive_tables_that_happen_to_hold_only_digits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = rng.choice(["01234", "12345", "AB12"], 120)
    path = tmp_path / "t.csv"
    path.write_text("zip,label\n" + "".join(f"{c},{'000' if c < '1' else '100'}\n" for c in codes))
    run = learn(load_training_data(str(path), "label"), QUICK, tmp_path / "r", progress=False)
    assert run.classes == ("000", "100")
    path.write_text("zip,label\n12345,100\n12345,100\n")
    predictions = predict_table(run, str(path))
    assert set(predictions["label"]) <= {"000", "100"}
    assert labelled_rows(run, str(path))[1].tolist() == [1, 1]
    assert not predictions["unlike"].any()
    path.write_text("zip,label\n12345,100\n77777,100\n")
    with pytest.raises(BadInput, match=r"row 2 of t\.csv has '77777' in column 'zip', which training never had"):
        predict_table(run, str(path))


def test_a_quantity_is_judged_in_the_form_it_was_learned_in(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{i};{i % 7}.{i:03d},5" for i in range(60)]
    path.write_text("x;y\n" + "\n".join(lines))
    run = learn(load_training_data(str(path), "y"), QUICK, tmp_path / "r", progress=False)
    assert run.spec["form"] == "decimal comma"
    path.write_text("x;y\n1;1.500\n2;2\n")
    assert labelled_rows(run, str(path))[1].flatten().tolist() == [1500, 2]
