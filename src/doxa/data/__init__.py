"""DATA: every data set by name, as numpy arrays. To add one: a file here and a line in TABLE."""

from collections.abc import Callable

from doxa.data.cifar10 import cifar10, cifar10_batch
from doxa.data.curve import Curve, curve
from doxa.data.dataset import Dataset
from doxa.data.digits import digits
from doxa.data.fashion_mnist import fashion_mnist
from doxa.data.mnist import mnist

TABLE: dict[str, Callable[..., Dataset | Curve]] = {
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
    "digits": digits,
    "curve": curve,
}

__all__ = [
    "TABLE",
    "Curve",
    "Dataset",
    "cifar10",
    "cifar10_batch",
    "curve",
    "digits",
    "fashion_mnist",
    "mnist",
]
