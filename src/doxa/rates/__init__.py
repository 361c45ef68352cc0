"""RATE: the learning rate at each moment of a run. To add one: a file here and a line in TABLE."""

from collections.abc import Callable

from doxa.contracts import Schedule
from doxa.rates.constant import Constant as constant
from doxa.rates.cosine import Cosine as cosine
from doxa.rates.cyclical import Cyclical as cyclical
from doxa.rates.polynomial import Polynomial as polynomial
from doxa.rates.step import Step as step

TABLE: dict[str, Callable[..., Schedule]] = {
    "constant": constant,
    "step": step,
    "cosine": cosine,
    "cyclical": cyclical,
    "polynomial": polynomial,
}

__all__ = ["TABLE", "constant", "cosine", "cyclical", "polynomial", "step"]
