"""Every data set by name: what it is, where its files are, how to fetch and how to load it."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from doxa.data.card import Card
from doxa.data.dataset import Dataset
from doxa.data.download import DEADLINE, TIMEOUT, Progress, download
from doxa.data.files import data_folders, find_good, locate
from doxa.data.part import explain_write_errors
from doxa.data.series import Series
from doxa.data.sets.cifar10 import CARD as CIFAR10
from doxa.data.sets.cifar10 import cifar10
from doxa.data.sets.curve import CARD as CURVE
from doxa.data.sets.curve import Curve, curve
from doxa.data.sets.digits import CARD as DIGITS
from doxa.data.sets.digits import digits
from doxa.data.sets.fashion_mnist import CARD as FASHION_MNIST
from doxa.data.sets.fashion_mnist import fashion_mnist
from doxa.data.sets.ionosphere import CARD as IONOSPHERE
from doxa.data.sets.ionosphere import ionosphere
from doxa.data.sets.mnist import CARD as MNIST
from doxa.data.sets.mnist import mnist
from doxa.data.sets.mushroom import CARD as MUSHROOM
from doxa.data.sets.mushroom import mushroom
from doxa.data.sets.pima_diabetes import CARD as PIMA_DIABETES
from doxa.data.sets.pima_diabetes import pima_diabetes
from doxa.data.sets.temperature import CARDS as TEMPERATURE
from doxa.data.sets.temperature import temperature
from doxa.data.sets.two_moons import CARD as TWO_MOONS
from doxa.data.sets.two_moons import two_moons
from doxa.data.sets.uci_regression import CARDS as UCI_REGRESSION
from doxa.data.sets.uci_regression import uci_regression
from doxa.data.tabular import Tabular
from doxa.errors import BadInput, did_you_mean
from doxa.storage.cache import make_private

Loader = Callable[..., Dataset | Curve | Tabular | Series]

ENTRIES: tuple[tuple[Card, Loader], ...] = (
    (DIGITS, digits),
    (CURVE, curve),
    (TWO_MOONS, two_moons),
    (MNIST, mnist),
    (FASHION_MNIST, fashion_mnist),
    (CIFAR10, cifar10),
    (MUSHROOM, mushroom),
    (IONOSPHERE, ionosphere),
    (PIMA_DIABETES, pima_diabetes),
    *((entry_card, functools.partial(uci_regression, name)) for name, entry_card in UCI_REGRESSION.items()),
    *((entry_card, functools.partial(temperature, city)) for city, entry_card in TEMPERATURE.items()),
)
TABLE: dict[str, Loader] = {entry_card.name: loader for entry_card, loader in ENTRIES}
_CARDS = {entry_card.name: entry_card for entry_card, _ in ENTRIES}


def cards() -> list[Card]:
    """What is known of every data set."""
    return list(_CARDS.values())


def card(name: str) -> Card:
    """What is known of a data set: size, licence, source and files."""
    if name not in _CARDS:
        raise BadInput(f"there is no data set {name!r}{did_you_mean(str(name), _CARDS, most=40)}")
    return _CARDS[name]


def load(name: str, /, **options: Any) -> Dataset | Curve | Tabular | Series:
    """A data set, from DOXA_DATA or the cache; never from the network. The options are those of its own function."""
    loader = TABLE[card(name).name]
    parameters = inspect.signature(loader).parameters
    for option in options:
        if option not in parameters:
            accepted = f"its options are {', '.join(parameters)}" if parameters else "it has none"
            raise BadInput(f"{name} has no option {option!r}; {accepted}")
    return loader(**options)


def path(name: str) -> list[Path]:
    """Where the files of a data set are, or, where they are missing, belong; none for one that needs no files."""
    folder = data_folders()[0]
    return [file_path for file in card(name).files for file_path in locate(file) or [folder / file.path]]


def get(
    name: str, progress: Progress | None = None, timeout: float = TIMEOUT, deadline: float = DEADLINE
) -> list[Path]:
    """Fetch the files of a data set that are missing, to DOXA_DATA or else the cache, and say where all are.

    Those that are there are verified, and none is replaced.

    progress: called with the file and the bytes of it so far;  timeout: the seconds to wait for an answer or the next
    bytes;  deadline: the seconds for a whole file
    """
    folder = data_folders()[0]
    if not os.environ.get("DOXA_DATA"):
        with explain_write_errors(folder):
            make_private(folder)
    return [
        found
        for file in card(name).files
        for found in find_good(file, name) or [download(file, folder / file.path, progress, timeout, deadline)]
    ]
