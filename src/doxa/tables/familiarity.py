"""Which rows are unlike those a belief was learned from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 20_000  # enough to learn from
Z = 3.0902323  # a standard normal number lies below it in 999 cases of 1000

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How far a row lies from the training rows, against how far they lie from each other.

    d²(x) = (x − m)ᵀ C⁻¹ (x − m),  unlike where d² > limit, or where a column is below `low` or above `high`

    C is the shrunk covariance of Ledoit & Wolf (2004), A well-conditioned estimator for large-dimensional covariance
    matrices; Lee et al. (2018) use the same distance to detect what is out of distribution. The limit is learned from
    each training row's distance to all the others: where one in a thousand of them lies beyond it, and one in a
    thousand would if they were normal. A distance that sums over many columns hides one of them, so each has a range
    of its own: the training's, widened about its middle by half and more.
    """

    centre: Array  # [D]
    root: Array  # [D, D], C⁻¹ = root rootᵀ
    limit: float
    low: Array  # [D]
    high: Array  # [D]

    @classmethod
    def fit(cls, x: NDArray[np.float32], seed: int = 0) -> Familiarity:
        """From the training rows x [N, D]; of many, 20,000 drawn by the seed."""
        from sklearn.covariance import LedoitWolf

        sample = x
        if len(x) > ROWS:
            sample = x[np.sort(np.random.default_rng(seed).choice(len(x), ROWS, replace=False))]
        rows = sample.astype(np.float64)
        covariance = LedoitWolf().fit(rows)
        centre, root = covariance.location_, np.linalg.cholesky(covariance.precision_ + 1e-12 * np.eye(x.shape[1]))
        distances = _leave_one_out_distances(_squared_distances(rows, centre, root), float(covariance.shrinkage_))
        return cls(centre, root, _distance_limit(distances), *_column_ranges(rows))

    def unlike(self, x: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which rows of x [N, D] lie further out than the limit, or have a column out of its range."""
        out_of_range = ((x < self.low) | (x > self.high)).any(1)
        return out_of_range | (_squared_distances(x, self.centre, self.root) > self.limit)

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {
            "centre": self.centre,
            "root": self.root,
            "limit": np.array(self.limit),
            "low": self.low,
            "high": self.high,
        }

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> Familiarity:
        """The way back from `state`."""
        bounds = (state.get(name, np.array(default)) for name, default in (("low", -np.inf), ("high", np.inf)))
        return cls(state["centre"], state["root"], float(state["limit"].item()), *bounds)


def _squared_distances(x: NDArray[Any], centre: Array, root: Array) -> Array:
    parts = [np.square((p - centre) @ root).sum(1) for p in np.array_split(x, max(1, len(x) // 10_000))]
    return np.concatenate(parts)


def _leave_one_out_distances(squares: Array, shrinkage: float) -> Array:
    """The training rows' d² [N] had each been left out of m and C in turn.

    By the formula of Sherman & Morrison (1950), the strength of the shrinkage held as it is.
    """
    n = len(squares)
    remaining = 1 - (1 - shrinkage) * squares / max(1, n - 1)
    return n / max(1, n - 1) * squares / np.maximum(remaining, 1e-9)


def _outlier_share(n: int) -> float:
    """The share of training rows that may be unlike the others: one in a thousand, three of fewer, at most 1 %."""
    return min(0.01, max(0.001, 3 / n))


def _order_statistic(values: Array) -> float:
    """What all but the strange ones of the values [N], and one value more, lie below."""
    n = len(values)
    return float(np.sort(values)[min(n, math.ceil((n + 1) * (1 - _outlier_share(n)))) - 1])


def _distance_limit(squares: Array) -> float:
    """The d² that one row in a thousand exceeds, from those of the training rows [N].

    Where there are too few rows to see it, by the cube roots, which of a χ² are nearly normal: Wilson & Hilferty
    (1931), The distribution of chi-square; in place of Z is Student's quantile of as many rows.
    """
    n = len(squares)
    roots = np.cbrt(squares)
    free = max(1, n - 1)
    student = Z + (Z**3 + Z) / (4 * free) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * free**2)
    normal = (float(roots.mean()) + student * math.sqrt(1 + 1 / n) * float(roots.std())) ** 3
    return max(normal, _order_statistic(squares))


def _column_ranges(x: Array) -> tuple[Array, Array]:
    """For each column of x [N, D], the lowest and the highest value that is not far outside the training's range.

    Of normal columns about five standard deviations from the middle, however many rows there are.
    """
    n = len(x)
    ends = np.sort(x, axis=0)[[0, min(1, n - 1), max(0, n - 2), n - 1]]
    low, high = ends[0], ends[3]
    middle, half = (low + high) / 2, (high - low) / 2
    widths = max(1.5 + 5 / math.sqrt(n), _order_statistic(_outermost_distances(x, ends)))
    slack = 1e-6 * (1 + np.abs(middle))  # of a column that never varies
    return middle - widths * half - slack, middle + widths * half + slack


def _outermost_distances(x: Array, ends: Array) -> Array:
    """How far out each row [N] lies in its outermost column, in half the widths of the other rows' range."""
    low, next_low, next_high, high = ends
    distances = np.ones(len(x))
    for is_extreme, other_range in ((x == low, (next_low, high)), (x == high, (low, next_high))):
        half = (other_range[1] - other_range[0]) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.abs(x - (other_range[0] + other_range[1]) / 2) / half
        # A value seen once among equal ones tells nothing of how far values reach.
        distances = np.maximum(distances, np.where(is_extreme & (half > 0), distance, 1).max(1))
    return distances
