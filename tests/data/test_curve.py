"""The regression curve."""

from __future__ import annotations

import numpy as np
import pytest

from doxa.data import curve
from doxa.errors import BadInput


def test_shapes_types_and_ranges() -> None:
    dataset = curve()
    assert dataset.x_train.shape == dataset.y_train.shape == (1024, 1)
    assert dataset.x_test.shape == dataset.y_test.shape == (1000, 1)
    assert all(part.dtype == np.float32 for part in (dataset.x_train, dataset.y_train, dataset.x_test, dataset.y_test))
    assert 0 <= dataset.x_train.min() < 0.01
    assert 0.49 < dataset.x_train.max() <= 0.5
    assert dataset.x_train.mean() == pytest.approx(0.25, abs=0.02)
    assert (dataset.x_test[0], dataset.x_test[-1]) == (-0.5, 1.5)
    assert np.allclose(np.diff(dataset.x_test, axis=0), 2 / 999, atol=1e-6)


def test_without_noise_it_is_the_formula() -> None:
    dataset = curve(noise=0.0)
    # By hand: sin(π/2) = 1, sin(π) = 0 at 1/4; sin(π/4) = √½, sin(π/2) = 1 at 1/8.
    for x, y in ((0.0, 0.0), (0.125, 0.425 + 0.3 * 0.5**0.5), (0.25, 0.55), (0.5, 0.5)):
        assert np.interp(x, dataset.x_test[:, 0], dataset.y_test[:, 0]) == pytest.approx(y, abs=1e-4)
    order = dataset.x_train[:, 0].argsort()
    drawn = np.interp(dataset.x_test[250:500, 0], dataset.x_train[order, 0], dataset.y_train[order, 0])
    assert drawn == pytest.approx(dataset.y_test[250:500, 0], abs=5e-3)


def test_noise_enters_once_outside_and_inside_both_waves() -> None:
    # To first order y moves by ε · (1 + 0.6π cos(2πx) + 1.2π cos(4πx)): one ε, used three times.
    count, noise = 200_000, 1e-3
    still, moved = curve(test=count, noise=0.0), curve(test=count, noise=noise)
    x = still.x_test[:, 0].astype(np.float64)
    slope = 1 + 0.6 * np.pi * np.cos(2 * np.pi * x) + 1.2 * np.pi * np.cos(4 * np.pi * x)
    e = (moved.y_test - still.y_test)[:, 0] / slope
    steep = np.abs(slope) > 1
    assert e[steep].std() == pytest.approx(noise, rel=0.02)
    assert abs(e[steep].mean()) < 4 * noise / np.sqrt(steep.sum())


def test_seed_names_the_points() -> None:
    assert np.array_equal(curve(3).y_train, curve(3).y_train)
    assert not np.array_equal(curve(3).x_train, curve(4).x_train)
    assert not np.array_equal(curve(3).y_test, curve(4).y_test)
    assert np.array_equal(curve(3, test=7).y_train, curve(3).y_train)
    assert np.array_equal(curve(3, train=7).y_test, curve(3).y_test)


@pytest.mark.parametrize("settings", [{"train": 0}, {"test": -1}, {"noise": -0.1}, {"noise": float("nan")}])
def test_refuses_what_makes_no_curve(settings: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        curve(**settings)
