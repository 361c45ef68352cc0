"""The scikit-learn front: a classifier and a regressor whose weights are beliefs."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from doxa.auto import KL_WEIGHTS, RATE, choose
from doxa.errors import BadInput, require_whole
from doxa.judge.recalibration import interval
from doxa.nets.mlp import mlp
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws

__all__ = ["BayesianClassifier", "BayesianRegressor"]

Array = NDArray[Any]


class _Bayesian(BaseEstimator):
    """What the two have in common: scaling, the net, the choice of its settings."""

    def __init__(
        self,
        hidden: Sequence[int] = (100, 100),
        kl_weights: Sequence[float] = KL_WEIGHTS,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float = RATE,
        members: int | None = None,
        samples: int = 200,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden = hidden
        self.kl_weights = kl_weights
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.members = members
        self.samples = samples
        self.random_state = random_state

    def _fit_committee(self, x: Array, y: torch.Tensor, outputs: int, classes: bool) -> None:
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        hidden = self._hidden_sizes()
        self.scaler_ = StandardScaler().fit(x)
        self.seed_ = int(seed)
        inputs = self._scale_inputs(x)
        choice = choose(
            lambda: mlp(inputs.shape[1], hidden, outputs),
            inputs,
            y,
            classes=classes,
            kl_weights=self.kl_weights,
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            members=self.members,
            seed=self.seed_,
        )
        # In float64 a row's prediction does not depend on the rows it comes with.
        self.belief_: Belief | None = choice.belief.to(dtype=torch.float64)
        self.trials_, self.kl_weight_ = choice.trials, choice.kl_weight
        self.noise_, self.levels_ = choice.noise, choice.levels

    def _hidden_sizes(self) -> tuple[int, ...]:
        """The sizes of the hidden layers; counts of nothing, and what is no number, are refused."""
        if isinstance(self.hidden, str) or not hasattr(self.hidden, "__iter__"):
            raise BadInput(f"hidden must be the sizes of the layers, as in (100, 100); got {self.hidden!r}")
        require_whole("samples", self.samples)
        return tuple(require_whole("hidden", units) for units in self.hidden)

    def _scale_inputs(self, x: Array) -> torch.Tensor:
        # Far away every net is a straight line; what overflows a float32 is not worth following there.
        return torch.as_tensor(np.clip(self.scaler_.transform(x), -1e6, 1e6), dtype=torch.float32)

    def _draws(self, X: ArrayLike) -> Draws:
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64)
        assert self.belief_ is not None
        return self.belief_.predict(self._scale_inputs(x).double(), self.samples, self.seed_)


class BayesianRegressor(RegressorMixin, _Bayesian):
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


class BayesianClassifier(ClassifierMixin, _Bayesian):
    """Classification with probabilities to be believed: a net with uncertain weights.

    p(y | x) = (1/S) Σₛ softmax(net(x, wₛ))_y,  wₛ ~ q

    Inputs are scaled inside. A committee of `members`, each learned without a fifth of the rows, chooses KL weight (of
    `kl_weights`) and stopping on the rows its members have not seen; `epochs` is the most each takes.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> BayesianClassifier:
        """Learn from rows X [N, D] and labels y [N]."""
        x, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_ = unique_labels(labels)
        if len(self.classes_) > 1:
            index = torch.as_tensor(np.searchsorted(self.classes_, labels))
            self._fit_committee(x, index, len(self.classes_), classes=True)
        else:
            self.belief_ = None  # of one class there is nothing to learn
        return self

    def predict_proba(self, X: ArrayLike) -> Array:
        """The probability of each class [N, C], averaged over the draws."""
        check_is_fitted(self)
        if self.belief_ is None:
            return np.ones((len(validate_data(self, X, reset=False, dtype=np.float64)), 1))
        p = self._draws(X).mean.double().numpy()
        return p / p.sum(1, keepdims=True)

    def predict(self, X: ArrayLike) -> Array:
        """The most probable class [N]."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]
