"""Cells of text that a spreadsheet would take for a formula."""

from __future__ import annotations

import re

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# What begins a formula, in letters of full width too; the apostrophes before it are those of `quote_formula`.
DIVIDED = re.compile('[,;\t|"\r\n]')  # at what programs divide cells, the comma or what they are told
FORMULA = re.compile("'*[=@+\\-\t\r\n＝＠＋－]")


def quote_formula(text: str) -> str:
    """A cell as text to every spreadsheet: with an apostrophe before what would begin a formula, plain numbers aside.

    One that has such apostrophes already gets one more, so that no two texts become one.
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def unquote_formula(text: str) -> str:
    """What `quote_formula` made a cell of."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def csv_cell(text: str) -> str:
    """A cell of a CSV file: no formula, and in quotation marks where it holds what may divide cells."""
    quoted = quote_formula(text)
    return '"' + quoted.replace('"', '""') + '"' if DIVIDED.search(quoted) else quoted
