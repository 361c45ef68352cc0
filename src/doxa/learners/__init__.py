"""LEARNER: a way to a posterior, with gradients. To add one: a file here and a line in TABLE."""

from doxa.learners.dropout import Dropout as dropout
from doxa.learners.ensemble import Ensemble as ensemble
from doxa.learners.point import Point as point
from doxa.learners.variational import Variational as variational

TABLE = {"point": point, "dropout": dropout, "variational": variational, "ensemble": ensemble}

__all__ = ["TABLE", "dropout", "ensemble", "point", "variational"]
