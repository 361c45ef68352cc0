"""UCI Ionosphere."""

from __future__ import annotations

from doxa.data.card import Card, File
from doxa.data.files import find_file
from doxa.data.formats.text import encode_letters, parse_numbers, read_cells
from doxa.data.tabular import Tabular

FILE = File(
    path="ionosphere/ionosphere.data",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/ionosphere/ionosphere.data",
    bytes=76_467,
    sha256="46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd",
)
CARD = Card(
    name="ionosphere",
    description="Radar returns from free electrons in the ionosphere that show structure (good) or do not (bad).",
    rows=351,
    shape=(34,),
    task="classification",
    licence="CC BY 4.0",
    citation="Sigillito, Wing, Hutton & Baker (1989), UCI Machine Learning Repository, doi 10.24432/C5W01B",
    home="https://archive.ics.uci.edu/dataset/52/ionosphere",
    files=(FILE,),
)
COLUMNS = tuple(f"pulse_{pulse}_{part}" for pulse in range(1, 18) for part in ("real", "imaginary"))


def ionosphere() -> Tabular:
    """Did the radar see structure? 351 returns, 126 bad (0) and 225 good (1): x float64 [351, 34] in [−1, 1].

    The second column is zero throughout. Sigillito, Wing, Hutton & Baker (1989), Classification of radar returns from
    the ionosphere using neural networks.
    """
    path = find_file(FILE, CARD.name)
    rows = read_cells(path, columns=35, rows=CARD.rows)
    x = parse_numbers(path, [row[:-1] for row in rows])
    return Tabular(
        CARD.name, x, encode_letters(path, [row[-1] for row in rows], "bg"), COLUMNS, "return", ("bad", "good")
    )
