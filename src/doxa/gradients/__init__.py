"""GRADIENT: how nets are evaluated on a batch, and which way is down. To add one: a file here, and a learner of it."""

from doxa.gradients.point import PointGradient
from doxa.gradients.variational import VariationalGradient

__all__ = ["PointGradient", "VariationalGradient"]
