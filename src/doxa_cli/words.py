"""What a word on the command line may be: text without NUL, and whole numbers that can be counted with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Of halves of characters, those from DC80 on are bytes of a file's name that are no UTF-8.
NO_NAME = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
WHOLE = range(-(2**63), 2**63)
BEYOND = "lies beyond ±2⁶³, further than is counted here"
LONGEST_SEED = 512  # bits, of what is refused in words of its own


def is_beyond_count(name: str, value: Any) -> bool:
    """Whether a whole number is larger than any that torch takes; a seed has limits of its own."""
    if not isinstance(value, int) or value in WHOLE:
        return False
    return name != "seed" or value.bit_length() > LONGEST_SEED


def problem_of_words(words: Iterable[str]) -> str | None:
    """What keeps words from being arguments, which no operating system would pass on; None where all is well."""
    for position, word in enumerate(words, start=1):
        if NO_NAME.search(word):
            return f"argument {position}, {word[:60]!a}, is no text: it holds a NUL or half a character"
    return None


def problem_of_numbers(parameters: Mapping[str, Any]) -> str | None:
    """The first of a command's parameters that is larger than can be counted with; None where all is well."""
    for name, value in parameters.items():
        if is_beyond_count(name, value):
            return f"--{name.replace('_', '-')} {BEYOND}"
    return None
