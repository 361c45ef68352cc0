"""What the two estimators have in common: scaling, the net, the choice of its settings."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from doxa.auto import KL_WEIGHTS, RATE, KLWeight, choose
from doxa.errors import BadInput, require_whole
from doxa.nets.mlp import mlp
from doxa.predict.belief import Belief
from doxa.predict.draws import Draws

Array = NDArray[Any]


class CommitteeEstimator(BaseEstimator):
    """What the two have in common: scaling, the net, the choice of its settings."""

    def __init__(
        self,
        hidden: Sequence[int] = (100, 100),
        kl_weights: Sequence[KLWeight] = KL_WEIGHTS,
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
