"""Tables of the pages, and text that stays as it is inside them."""

from __future__ import annotations

from collections.abc import Sequence

MARKUP = str.maketrans({letter: f"&#{ord(letter)};" for letter in "&<>|*_$[]`\\"})


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """A Markdown table, its first `text_columns` columns to the left and the others to the right."""
    lines = [headers, ["---" if column_index < text_columns else "---:" for column_index in range(len(headers))], *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in line)} |" for line in lines)


def cards(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words, whose lines a phone shows as cards."""
    return f'<div class="cards" markdown="1">\n\n{table(headers, rows, text_columns=len(headers))}\n\n</div>'


def text(value: object) -> str:
    """Words of a file or of code in Markdown, where no letter of theirs is markup."""
    return " ".join(str(value).split()).translate(MARKUP)
