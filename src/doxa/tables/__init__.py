"""TABLES: from columns of numbers and words to what a net can take, and back."""

from doxa.tables.familiarity import Familiarity
from doxa.tables.preparation import FAR, Preparation, require_range
from doxa.tables.read import read
from doxa.tables.table import Column, Numbers, Table, Words, as_words, part
from doxa.tables.target import Target, apart, find, labels, quantities

__all__ = [
    "FAR",
    "Column",
    "Familiarity",
    "Numbers",
    "Preparation",
    "Table",
    "Target",
    "Words",
    "apart",
    "as_words",
    "find",
    "labels",
    "part",
    "quantities",
    "read",
    "require_range",
]
