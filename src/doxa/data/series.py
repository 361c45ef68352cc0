"""A quantity over days."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Series:
    """Days in order and one value on each; days without a value are left out.

    dates: datetime64[D] [N];  values: float64 [N], in `unit`
    """

    name: str
    dates: NDArray[np.datetime64]
    values: NDArray[np.float64]
    unit: str
