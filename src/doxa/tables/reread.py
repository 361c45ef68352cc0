"""A column of a new table, read as the training's was."""

from __future__ import annotations

import numpy as np

from doxa.errors import BadInput, shorten
from doxa.tables.columns import words_as_numbers
from doxa.tables.forms import COMMA, DATE, DURATION, NUMBER, PARSERS, THOUSANDS
from doxa.tables.table import Column, Numbers, Table, Words, as_words

# How a form is named where a column is not in it.
FORM_NAMES = {
    NUMBER: "numbers",
    COMMA: "numbers with decimal commas",
    THOUSANDS: "numbers with thousands separators",
    DATE: "dates, e.g. 2024-01-31",
    DURATION: "durations",
}


def column_in_form(table: Table, name: str, form: str) -> Numbers:
    """The column of this name as numbers written in a form; an error where they are not."""
    column = table.column(name)
    if column.missing.all():
        return Numbers(np.full(len(column), np.nan), form)
    numbers = _reinterpret(column, form, table.comma)
    if numbers is not None:
        return numbers
    subject = f"column {shorten(name)!r} of {table.name}"
    if isinstance(column, Numbers) and column.form in (DATE, DURATION):
        raise BadInput(f"{subject} holds {column.form}s; it was learned as {FORM_NAMES[form]}")
    words = as_words(column)
    parser = PARSERS.get(form, lambda text: None)
    example = next((w for w in words.levels if parser(w) is None), words.levels[0])
    kind = "words" if isinstance(column, Words) else "numbers"
    raise BadInput(f"{subject} holds {kind}, e.g. {shorten(example, 30)!r}; it was learned as {FORM_NAMES[form]}")


def _reinterpret(column: Column, form: str, comma: bool) -> Numbers | None:
    if column.form == form and isinstance(column, Numbers):
        return column
    plain_numbers = column if isinstance(column, Numbers) and column.form == NUMBER else None
    if form in (DATE, DURATION):
        return words_as_numbers(column, form) if isinstance(column, Words) else None
    if isinstance(column, Numbers) and column.form in (DATE, DURATION):
        return None
    if form == NUMBER:
        return column if isinstance(column, Numbers) else words_as_numbers(column, form)
    if plain_numbers is not None and plain_numbers.cells is None:
        return plain_numbers
    words = as_words(column)
    # 1.500 among decimal commas is 1500; in a file that has commas between its cells it is 1.5.
    if form == COMMA and not comma and not any("," in level for level in words.levels):
        return plain_numbers
    return words_as_numbers(words, form) or plain_numbers
