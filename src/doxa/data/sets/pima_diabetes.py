"""Pima Indians Diabetes."""

from __future__ import annotations

import numpy as np

from doxa.data.card import Card, File
from doxa.data.files import find_file
from doxa.data.formats.text import encode_letters, parse_numbers, read_cells
from doxa.data.tabular import Tabular

FILE = File(
    path="pima_diabetes/pima-indians-diabetes.data",
    url="https://raw.githubusercontent.com/jbrownlee/Datasets/master/pima-indians-diabetes.data.csv",
    bytes=23_278,
    sha256="6bfe5d0f379d17a0e0819b996407e3c09bf80febd4287f2ed212190dfff154af",
    also=("06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5",),  # with an end to its last line
)
CARD = Card(
    name="pima_diabetes",
    description="Women of Pima heritage near Phoenix, Arizona, with and without diabetes, by eight measurements.",
    rows=768,
    shape=(8,),
    task="classification",
    licence="none stated; commonly passed on as CC0",
    citation="National Institute of Diabetes and Digestive and Kidney Diseases (1990); Smith et al. (1988)",
    home="https://github.com/jbrownlee/Datasets",
    files=(FILE,),
    note="Withdrawn from the UCI repository; fetched from a mirror.",
)
COLUMNS = ("pregnancies", "glucose", "blood_pressure", "skin_thickness", "insulin", "bmi", "pedigree", "age")
ZERO_IS_MISSING = slice(1, 6)  # nobody's glucose, blood pressure, skin, insulin or mass is zero


def pima_diabetes() -> Tabular:
    """Has she diabetes? 768 women, 500 without (0) and 268 with it (1): x float64 [768, 8], NaN where not measured.

    Smith, Everhart, Dickson, Knowler & Johannes (1988), Using the ADAP learning algorithm to forecast the onset of
    diabetes mellitus.
    """
    path = find_file(FILE, CARD.name)
    rows = read_cells(path, columns=9, rows=CARD.rows)
    x = parse_numbers(path, [row[:-1] for row in rows])
    measured = x[:, ZERO_IS_MISSING]
    measured[measured == 0] = np.nan
    y = encode_letters(path, [row[-1] for row in rows], "01")
    return Tabular(CARD.name, x, y, COLUMNS, "diabetes", ("negative", "positive"))
