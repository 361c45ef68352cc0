"""Which rows are unlike those a belief was learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 20_000  # enough to learn from


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How far a row lies from the training rows, against how far they lie from each other.

    d²(x) = (x − m)ᵀ C⁻¹ (x − m),  unlike where d² exceeds all but one in a thousand of the training rows'

    C is the shrunk covariance of Ledoit & Wolf (2004), A well-conditioned estimator for large-dimensional covariance
    matrices; Lee et al. (2018) use the same distance to detect what is out of distribution.
    """

    centre: NDArray[np.float64]  # [D]
    root: NDArray[np.float64]  # [D, D], C⁻¹ = root rootᵀ
    limit: float

    @classmethod
    def learned(cls, x: NDArray[np.float32], seed: int = 0) -> Familiarity:
        """From the training rows x [N, D]; of many, 20,000 drawn by the seed."""
        from sklearn.covariance import LedoitWolf

        some = x
        if len(x) > ROWS:
            some = x[np.sort(np.random.default_rng(seed).choice(len(x), ROWS, replace=False))]
        found = LedoitWolf().fit(some.astype(np.float64))
        centre, root = found.location_, np.linalg.cholesky(found.precision_ + 1e-12 * np.eye(x.shape[1]))
        distances = np.sort(_distance(some, centre, root))
        # The largest of fewer than a thousand rows is no limit: half as far again is.
        limit = distances[-1] * 1.5**2 if len(distances) < 1000 else float(np.quantile(distances, 0.999))
        return cls(centre, root, float(limit))

    def unlike(self, x: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which rows of x [N, D] lie further out than the limit."""
        return _distance(x, self.centre, self.root) > self.limit

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {"centre": self.centre, "root": self.root, "limit": np.array(self.limit)}

    @classmethod
    def of(cls, state: dict[str, NDArray[Any]]) -> Familiarity:
        """The way back from `state`."""
        return cls(state["centre"], state["root"], float(state["limit"].item()))


def _distance(x: NDArray[np.float32], centre: NDArray[np.float64], root: NDArray[np.float64]) -> NDArray[np.float64]:
    parts = [np.square((p - centre) @ root).sum(1) for p in np.array_split(x, max(1, len(x) // 10_000))]
    return np.concatenate(parts)
