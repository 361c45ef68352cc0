"""ESTIMATORS: the scikit-learn front, a classifier and a regressor whose weights are beliefs."""

from doxa.estimators.classifier import BayesianClassifier
from doxa.estimators.regressor import BayesianRegressor

__all__ = ["BayesianClassifier", "BayesianRegressor"]
