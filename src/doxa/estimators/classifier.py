"""The classifier: a probability for every class."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from doxa.estimators.committee import Array, CommitteeEstimator


class BayesianClassifier(ClassifierMixin, CommitteeEstimator):
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
