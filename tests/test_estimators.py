"""The scikit-learn front: its conventions, and that error bars and probabilities mean what they say."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator

from doxa.errors import BadInput
from doxa.estimators import BayesianClassifier, BayesianRegressor

QUICK = {"hidden": (30,), "kl_weights": (0.1,), "epochs": 25, "members": 2, "samples": 20, "random_state": 0}


@pytest.mark.parametrize("kind", [BayesianRegressor, BayesianClassifier])
def test_scikit_learn_finds_no_fault(kind: Any) -> None:
    """Every check of check_estimator; none is expected to fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = check_estimator(kind(**{**QUICK, "members": 1}), on_fail=None)
    failed = [(c["check_name"], c["exception"]) for c in checks if c["status"] not in ("passed", "skipped")]
    assert not failed
    assert sum(c["status"] == "passed" for c in checks) >= 48


def noisy_line(rows: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (rows, 1))
    return x, 1000 * (x[:, 0] + 0.3 * rng.normal(size=rows)) + 5000


@pytest.fixture(scope="module")
def line() -> tuple[Any, Any]:
    return noisy_line(300, seed=0)


@pytest.fixture(scope="module")
def regressor(line: tuple[Any, Any]) -> BayesianRegressor:
    return BayesianRegressor(**{**QUICK, "epochs": 60, "samples": 100}).fit(*line)


def test_error_bars_are_in_the_units_of_y_and_cover_fresh_rows(regressor: BayesianRegressor) -> None:
    x, y = noisy_line(4000, seed=1)
    mean, std = regressor.predict(x, return_std=True)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 400
    assert 220 < std.mean() < 450
    for level in (0.5, 0.9):
        lower, upper = regressor.predict_interval(x, level)
        assert abs(np.mean((lower <= y) & (y <= upper)) - level) < 0.05
    density = regressor.log_density(x, y)
    assert density.shape == (4000,)
    assert density.mean() == pytest.approx(-np.log(300 * np.sqrt(2 * np.pi * np.e)), abs=0.15)


def test_uncertainty_grows_away_from_the_data(regressor: BayesianRegressor) -> None:
    _, near = regressor.predict(np.array([[0.0]]), return_std=True)
    _, far = regressor.predict(np.array([[30.0]]), return_std=True)
    assert far[0] > 1.5 * near[0]


def test_a_fitted_estimator_survives_pickling(regressor: BayesianRegressor, line: tuple[Any, Any]) -> None:
    again = pickle.loads(pickle.dumps(regressor))
    np.testing.assert_array_equal(again.predict(line[0]), regressor.predict(line[0]))
    np.testing.assert_array_equal(again.predict_interval(line[0]), regressor.predict_interval(line[0]))


@pytest.mark.parametrize("estimator", [BayesianClassifier, BayesianRegressor])
def test_a_pickle_may_name_an_estimator_by_its_room(estimator: type) -> None:
    """As those do that were written when the room was one file."""
    assert pickle.loads(f"cdoxa.estimators\n{estimator.__name__}\n.".encode()) is estimator


def test_it_is_clonable_and_repeats_by_its_seed(line: tuple[Any, Any]) -> None:
    x, y = line[0][:60], line[1][:60]
    short = BayesianRegressor(**{**QUICK, "epochs": 3})
    first, second = clone(short).fit(x, y), clone(short).fit(x, y)
    np.testing.assert_array_equal(first.predict(x), second.predict(x))
    other_seed = clone(short).set_params(random_state=1).fit(x, y)
    assert not np.array_equal(first.predict(x), other_seed.predict(x))


def test_it_is_at_home_in_pipelines_and_grid_searches() -> None:
    x, y = load_iris(return_X_y=True)
    short = BayesianClassifier(**{**QUICK, "epochs": 8})
    pipe = make_pipeline(PolynomialFeatures(2), short)
    search = GridSearchCV(pipe, {"bayesianclassifier__hidden": [(8,), (16,)]}, cv=2, scoring="neg_log_loss").fit(x, y)
    assert search.best_score_ > -1
    assert search.predict_proba(x).shape == (150, 3)


def test_probabilities_follow_the_classes_as_named() -> None:
    x, y = load_iris(return_X_y=True)
    names = np.array(["z-first", "a-second", "m-third"])[y]
    model = BayesianClassifier(**QUICK).fit(x, names)
    assert model.classes_.tolist() == ["a-second", "m-third", "z-first"]
    p = model.predict_proba(x)
    np.testing.assert_allclose(p.sum(1), 1)
    assert (model.predict(x) == names).mean() > 0.9
    np.testing.assert_array_equal(model.classes_[p.argmax(1)], model.predict(x))


def test_bad_input_is_refused() -> None:
    x, y = make_regression(30, 3, random_state=0)
    model = BayesianRegressor(**{**QUICK, "epochs": 2})
    with pytest.raises(NotFittedError):
        model.predict(x)
    model.fit(x, y)
    with pytest.raises(BadInput, match="level must lie"):
        model.predict_interval(x, 1.5)
    with pytest.raises(ValueError, match="features"):
        model.predict(x[:, :2])
    with pytest.raises(BadInput, match="at least one weight"):
        BayesianRegressor(kl_weights=()).fit(x, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"members": 0}, "members must be at least 1, got 0"),
        ({"members": -1}, "members must be at least 1, got -1"),
        ({"members": 31}, "members must be at most 30"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"hidden": 5}, r"hidden must be the sizes of the layers, as in \(100, 100\); got 5"),
        ({"hidden": "wide"}, "hidden must be the sizes of the layers"),
        ({"hidden": (5, 0)}, "hidden must be at least 1, got 0"),
        ({"kl_weights": 0.1}, "kl_weights must hold at least one weight to try, as in"),
    ],
)
@pytest.mark.parametrize("kind", [BayesianRegressor, BayesianClassifier])
def test_counts_of_nothing_are_refused_and_not_taken_for_the_default(
    kind: Any, change: dict[str, Any], message: str
) -> None:
    x, y = load_iris(return_X_y=True)
    with pytest.raises(BadInput, match=message):
        kind(**{**QUICK, "epochs": 1, **change}).fit(x[::5], y[::5])
