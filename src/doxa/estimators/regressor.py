"""The regressor: an error bar for every row."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from doxa.estimators.committee import Array, CommitteeEstimator
from doxa.judge.recalibration import interval


class BayesianRegressor(RegressorMixin, CommitteeEstimator):
    """Regression with an honest error bar: a net with uncertain weights and noise of one size.

    p(y | x) = (1/S) Σₛ N(y; net(x, wₛ), noise²),  wₛ ~ q

    Inputs and targets are scaled inside. A committee of `members`, each learned without a fifth of the rows, chooses KL
    weight (of `kl_weights`), stopping and noise on the rows its members have not seen; `epochs` is the most each takes.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> BayesianRegressor:
        """Learn from rows X [N, D] and targets y [N]."""
        x, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        targets = targets.astype(np.float64)
        self.target_mean_ = float(targets.mean())
        self.target_scale_ = float(targets.std()) or 1.0
        scaled = torch.as_tensor((targets - self.target_mean_) / self.target_scale_, dtype=torch.float32)
        self._fit_committee(x, scaled[:, None], 1, classes=False)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """The predictive mean [N], and with `return_std` the standard deviation of y [N], noise included."""
        draws = self._draws(X)
        mean = self._unscale_mean(draws.mean)
        return (mean, self._unscale_std(draws.std)) if return_std else mean

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Array, Array]:
        """The central interval [N], [N] that holds y with probability `level`, calibrated on the rows set aside."""
        lower, upper = interval(self._draws(X), level, self.levels_)
        return self._unscale_mean(lower), self._unscale_mean(upper)

    def log_density(self, X: ArrayLike, y: ArrayLike) -> Array:
        """log p(y | x) of each row [N], in the units of y."""
        draws = self._draws(X)
        scaled = (np.asarray(y, np.float64) - self.target_mean_) / self.target_scale_
        return draws.log_predictive(torch.as_tensor(scaled)[:, None]).numpy() - np.log(self.target_scale_)

    def _unscale_mean(self, values: torch.Tensor) -> Array:
        return values.double().numpy()[:, 0] * self.target_scale_ + self.target_mean_

    def _unscale_std(self, values: torch.Tensor) -> Array:
        return values.double().numpy()[:, 0] * self.target_scale_
