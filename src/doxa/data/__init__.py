"""DATA: every data set by name, as numpy arrays. To add one: a file here and a line in catalogue.ENTRIES."""

from doxa.data.card import Card, File
from doxa.data.catalogue import TABLE, card, cards, get, load, path
from doxa.data.cifar10 import cifar10, cifar10_batch
from doxa.data.curve import Curve, curve
from doxa.data.dataset import Dataset
from doxa.data.digits import digits
from doxa.data.fashion_mnist import fashion_mnist
from doxa.data.ionosphere import ionosphere
from doxa.data.mnist import mnist
from doxa.data.mushroom import mushroom
from doxa.data.pima_diabetes import pima_diabetes
from doxa.data.series import Series
from doxa.data.tabular import Tabular
from doxa.data.temperature import temperature
from doxa.data.two_moons import two_moons
from doxa.data.uci_regression import uci_regression

__all__ = [
    "TABLE",
    "Card",
    "Curve",
    "Dataset",
    "File",
    "Series",
    "Tabular",
    "card",
    "cards",
    "cifar10",
    "cifar10_batch",
    "curve",
    "digits",
    "fashion_mnist",
    "get",
    "ionosphere",
    "load",
    "mnist",
    "mushroom",
    "path",
    "pima_diabetes",
    "temperature",
    "two_moons",
    "uci_regression",
]
