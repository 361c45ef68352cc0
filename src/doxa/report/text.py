"""Text from elsewhere, made fit to be shown; escaping it is the template's part."""

from __future__ import annotations

import unicodedata
from typing import Any

LONGEST = 40  # characters of a name; the whole of it is in its title
DIRECTION_MARKS = {
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
}  # the reading direction around them


def clean_text(text: Any) -> str:
    """Text that any page can hold: control characters, halves of characters and turns of direction as �."""
    return "".join("�" if _is_unprintable(character) else character for character in str(text))


def _is_unprintable(character: str) -> bool:
    control = unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"
    return control or character in DIRECTION_MARKS


def shorten(text: Any, longest: int = LONGEST) -> str:
    """The same on one line, cut where it is too long."""
    # Only the beginning is worth cleaning: names may be of any length.
    line = " ".join(clean_text(str(text)[: 4 * longest]).split())
    return line if len(line) <= longest and len(str(text)) <= 4 * longest else f"{line[: longest - 1]}…"
