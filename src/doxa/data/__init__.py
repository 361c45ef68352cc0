"""DATA: every data set by name, as numpy arrays. To add one: a file here and a line in catalogue.ENTRIES."""

from doxa.data.card import Card, File
from doxa.data.catalogue import TABLE, card, cards, get, load, path
from doxa.data.dataset import Dataset
from doxa.data.series import Series
from doxa.data.sets.cifar10 import cifar10, cifar10_batch
from doxa.data.sets.curve import Curve, curve
from doxa.data.sets.digits import digits
from doxa.data.sets.fashion_mnist import fashion_mnist
from doxa.data.sets.ionosphere import ionosphere
from doxa.data.sets.mnist import mnist
from doxa.data.sets.mushroom import mushroom
from doxa.data.sets.pima_diabetes import pima_diabetes
from doxa.data.sets.temperature import temperature
from doxa.data.sets.two_moons import two_moons
from doxa.data.sets.uci_regression import uci_regression
from doxa.data.tabular import Tabular

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
