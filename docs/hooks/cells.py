"""Tables of the pages, and text that stays as it is inside them."""

from __future__ import annotations

from collections.abc import Sequence

MARKUP = str.maketrans({letter: f"&#{ord(letter)};" for letter in "&<>|*_$[]`\\"})


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A Markdown table, its first `words` columns to the left and the others to the right."""
    lines = [heads, ["---" if place < words else "---:" for place in range(len(heads))], *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in line)} |" for line in lines)


def cards(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words, whose lines a phone shows as cards."""
    return f'<div class="cards" markdown="1">\n\n{table(heads, rows, words=len(heads))}\n\n</div>'


def text(words: object) -> str:
    """Words of a file or of code in Markdown, where no letter of theirs is markup."""
    return " ".join(str(words).split()).translate(MARKUP)
