"""A column of a new table, read as the training's was."""

from __future__ import annotations

import numpy as np

from doxa.errors import BadInput, shown
from doxa.tables.columns import written_as
from doxa.tables.forms import COMMA, DATE, DURATION, NUMBER, READINGS, THOUSANDS
from doxa.tables.table import Column, Numbers, Table, Words, as_words

# How a form is named where a column is not in it.
SAID = {
    NUMBER: "numbers",
    COMMA: "numbers with decimal commas",
    THOUSANDS: "numbers with thousands separators",
    DATE: "dates, e.g. 2024-01-31",
    DURATION: "durations",
}


def in_form(table: Table, name: str, form: str) -> Numbers:
    """The column of this name as numbers written in a form; an error where they are not."""
    column = table.column(name)
    if column.missing.all():
        return Numbers(np.full(len(column), np.nan), form)
    found = _reread(column, form, table.comma)
    if found is not None:
        return found
    said = f"column {shown(name)!r} of {table.name}"
    if isinstance(column, Numbers) and column.form in (DATE, DURATION):
        raise BadInput(f"{said} holds {column.form}s; it was learned as {SAID[form]}")
    words = as_words(column)
    read = READINGS.get(form, lambda text: None)
    odd = next((w for w in words.levels if read(w) is None), words.levels[0])
    kind = "words" if isinstance(column, Words) else "numbers"
    raise BadInput(f"{said} holds {kind}, e.g. {shown(odd, 30)!r}; it was learned as {SAID[form]}")


def _reread(column: Column, form: str, comma: bool) -> Numbers | None:
    if column.form == form and isinstance(column, Numbers):
        return column
    usual = column if isinstance(column, Numbers) and column.form == NUMBER else None
    if form in (DATE, DURATION):
        return written_as(column, form) if isinstance(column, Words) else None
    if isinstance(column, Numbers) and column.form in (DATE, DURATION):
        return None
    if form == NUMBER:
        return column if isinstance(column, Numbers) else written_as(column, form)
    if usual is not None and usual.cells is None:
        return usual
    words = as_words(column)
    # 1.500 among decimal commas is 1500; in a file that has commas between its cells it is 1.5.
    if form == COMMA and not comma and not any("," in level for level in words.levels):
        return usual
    return written_as(words, form) or usual
