"""TABLES: from columns of numbers and words to what a net can take, and back."""

from doxa.tables.familiarity import Familiarity
from doxa.tables.preparation import MAX_DEVIATIONS, Preparation, require_range
from doxa.tables.read import read
from doxa.tables.table import Column, Numbers, Table, Words, as_words, take_rows
from doxa.tables.target import Target, class_labels, split_target, split_trainable_target, target_values

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
    "read",
    "require_range",
    "split_target",
    "split_trainable_target",
    "take_rows",
    "target_values",
]
