"""TABLES: from columns of numbers and words to what a net can take, and back."""

from typing import TYPE_CHECKING

from doxa.moved.names import renamed
from doxa.tables.familiarity import Familiarity
from doxa.tables.formulas import csv_cell, quote_formula, unquote_formula
from doxa.tables.preparation import MAX_DEVIATIONS, Preparation, require_range
from doxa.tables.read import read
from doxa.tables.table import Column, Numbers, Table, Words, as_words, take_rows
from doxa.tables.target import Target, class_labels, split_target, split_trainable_target, target_values

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(
        __name__,
        {
            "FAR": "MAX_DEVIATIONS",
            "apart": "split_target",
            "find": "split_trainable_target",
            "labels": "class_labels",
            "part": "take_rows",
            "quantities": "target_values",
        },
    )

__all__ = [
    "MAX_DEVIATIONS",
    "Column",
    "Familiarity",
    "Numbers",
    "Preparation",
    "Table",
    "Target",
    "Words",
    "as_words",
    "class_labels",
    "csv_cell",
    "quote_formula",
    "read",
    "require_range",
    "split_target",
    "split_trainable_target",
    "take_rows",
    "target_values",
    "unquote_formula",
]
