"""UCI Mushroom."""

from __future__ import annotations

import numpy as np

from doxa.data.card import Card, File
from doxa.data.files import broken_file_error, find_file
from doxa.data.formats.one_hot import drop_first, one_hot
from doxa.data.formats.text import encode_letters, read_cells
from doxa.data.tabular import Tabular
from doxa.errors import BadInput, did_you_mean

FILE = File(
    path="mushroom/agaricus-lepiota.data",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/mushroom/agaricus-lepiota.data",
    bytes=373_704,
    sha256="e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
)
CARD = Card(
    name="mushroom",
    description="Gilled mushrooms, edible or poisonous, by 22 traits, each a letter; 2,480 stalk roots are not known.",
    rows=8124,
    shape=(22,),
    task="classification",
    licence="CC BY 4.0",
    citation="Mushroom (1981), UCI Machine Learning Repository, doi 10.24432/C5959T",
    home="https://archive.ics.uci.edu/dataset/73/mushroom",
    files=(FILE,),
)

LETTERS = {  # that occur in each column
    "cap-shape": "bcfksx",
    "cap-surface": "fgsy",
    "cap-color": "bcegnpruwy",
    "bruises": "ft",
    "odor": "acflmnpsy",
    "gill-attachment": "af",
    "gill-spacing": "cw",
    "gill-size": "bn",
    "gill-color": "beghknopruwy",
    "stalk-shape": "et",
    "stalk-root": "?bcer",  # ?: not known
    "stalk-surface-above-ring": "fksy",
    "stalk-surface-below-ring": "fksy",
    "stalk-color-above-ring": "bcegnopwy",
    "stalk-color-below-ring": "bcegnopwy",
    "veil-type": "p",
    "veil-color": "nowy",
    "ring-number": "not",
    "ring-type": "eflnp",
    "spore-print-color": "bhknoruwy",
    "population": "acnsvy",
    "habitat": "dglmpuw",
}


def letters(table: Tabular) -> Tabular:
    """The letters as they are published: str [N, 22]."""
    return table


ENCODINGS = {"one_hot": one_hot, "drop_first": drop_first, "letters": letters}


def mushroom(encoding: str = "one_hot") -> Tabular:
    """Is it edible? 8,124 mushrooms, 4,208 edible (0) and 3,916 poisonous (1), by 22 traits.

    "one_hot": a column for each letter, "?" (not known) included, float32 [8124, 117]; "drop_first": without the
    first of each trait, [8124, 95]; "letters": str [8124, 22]. Schlimmer (1987), Concept acquisition through
    representational adjustment.
    """
    if encoding not in ENCODINGS:
        raise BadInput(f"there is no encoding {encoding!r}{did_you_mean(str(encoding), ENCODINGS, most=40)}")
    path = find_file(FILE, CARD.name)
    kinds, *traits = zip(*read_cells(path, columns=1 + len(LETTERS), rows=CARD.rows), strict=True)
    for column, (trait, letters) in zip(traits, LETTERS.items(), strict=True):
        if unknown := set(column) - set(letters):
            raise broken_file_error(
                path, f"its column {trait} holds {min(unknown)!r}, expected one of {', '.join(letters)}"
            )
    y = encode_letters(path, kinds, "ep")
    table = Tabular(CARD.name, np.array(traits).T.copy(), y, tuple(LETTERS), "edibility", ("edible", "poisonous"))
    return ENCODINGS[encoding](table)
