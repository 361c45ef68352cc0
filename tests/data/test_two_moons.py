"""Two moons."""

from __future__ import annotations

import numpy as np
import pytest

from doxa.data import two_moons
from doxa.errors import BadInput


def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of each point from the circle of its moon, signed."""
    centre = np.where(y[:, None] == 0, [0.0, 0.0], [1.0, 0.5])
    return np.linalg.norm(x - centre, axis=1) - 1


def test_shapes_types_and_classes() -> None:
    table = two_moons(rows=501)
    assert table.x.shape == (501, 2)
    assert (table.x.dtype, table.y.dtype) == (np.float32, np.int64)
    assert np.bincount(table.y).tolist() == [251, 250]
    assert (table.task, table.classes) == ("classification", ("upper", "lower"))
    # In no order that a learner could exploit.
    assert 200 < np.count_nonzero(np.diff(table.y)) < 300


def test_without_noise_they_are_half_circles_that_reach_into_each_other() -> None:
    table = two_moons(rows=20_000, noise=0.0)
    upper, lower = table.x[table.y == 0], table.x[table.y == 1]
    assert distance(table.x, table.y) == pytest.approx(0, abs=1e-6)
    assert upper[:, 1].min() >= -1e-6
    assert lower[:, 1].max() <= 0.5 + 1e-6
    # Spread evenly along the half circle: the mean of sin over it is 2/π.
    assert upper.mean(0) == pytest.approx([0, 2 / np.pi], abs=0.02)
    assert lower.mean(0) == pytest.approx([1, 0.5 - 2 / np.pi], abs=0.02)
    # Each moon's tips lie inside the other's hollow, so that no line parts them; yet they keep apart.
    assert np.linalg.norm(lower[lower[:, 0] < 0.05] - [0, 0], axis=1).max() < 1
    assert np.linalg.norm(upper[upper[:, 0] > 0.95] - [1, 0.5], axis=1).max() < 1
    assert np.linalg.norm(upper[::20, None] - lower[None, ::20], axis=-1).min() > 0.2


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_noise_has_the_scale_asked_for(noise: float) -> None:
    still, moved = two_moons(4, 20_000, 0.0), two_moons(4, 20_000, noise)
    shift = (moved.x - still.x).astype(np.float64)
    assert shift.std(0) == pytest.approx([noise, noise], rel=0.03)
    assert np.abs(shift.mean(0)).max() < 4 * noise / np.sqrt(20_000)
    assert abs(np.corrcoef(shift.T)[0, 1]) < 0.03


def test_seed_names_the_points() -> None:
    assert np.array_equal(two_moons(3).x, two_moons(3).x)
    assert not np.array_equal(two_moons(3).x, two_moons(4).x)


@pytest.mark.parametrize("settings", [{"rows": 1}, {"rows": 0}, {"rows": 2.5}, {"noise": -0.1}, {"noise": np.inf}])
def test_refuses_what_makes_no_moons(settings: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        two_moons(**settings)
