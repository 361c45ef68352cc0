"""TABLES: from columns of numbers and words to what a net can take, and back."""

from doxa.tables.familiarity import Familiarity
from doxa.tables.preparation import Preparation
from doxa.tables.read import read
from doxa.tables.table import Column, Numbers, Table, Words
from doxa.tables.target import Target, apart, find

__all__ = ["Column", "Familiarity", "Numbers", "Preparation", "Table", "Target", "Words", "apart", "find", "read"]
