"""Words, numbers and values that nobody meant."""

from __future__ import annotations

import random
from typing import Any

from doxa_bench.faults.processes.audit import CANARY

CODE = f"__import__('os').system('touch {CANARY}')"
WORDS = [
    *(
        "",
        " ",
        "x",
        "y",
        "nan",
        "None",
        "true",
        "0x10",
        "1e5",
        "é",
        "日本",
        "🦆",
        "ß",
        "İ",
        "a b",
        "a,b",
        "a;b",
        "a\tb",
    ),
    *('"', "'", '""', '"a', "a\nb", "a\r\nb", "\r", "\x00", "a\x00b", "\x1b[31m", "\x07", "\u202e", "\ufeff", "\u2028"),
    *(
        "\ud800",
        "\udcff",
        "=1+1",
        "@SUM(A1)",
        "+1",
        "-1",
        "=cmd|' /C calc'!A0",
        CODE,
        f"{CANARY}.x",
        "%s%n",
        "{0}",
        "${HOME}",
    ),
    *(
        "../../x",
        "/etc/passwd",
        "CON",
        "a" * 5000,
        "[" * 500,
        "{" * 500,
        "__proto__",
        "<script>alert(1)</script>",
        "--help",
    ),
]
NUMBERS = [
    *(
        "0",
        "-0",
        "1",
        "-1",
        "2",
        "3",
        "0.5",
        "-0.5",
        "1.5",
        "1e3",
        "1e-320",
        "1e308",
        "1e309",
        "-1e309",
        "inf",
        "-inf",
        "nan",
    ),
    *(
        "9" * 400,
        "9" * 5000,
        "0x1p3",
        "1_000",
        "１２",
        "1,5",
        "1.000,5",
        "5 %",
        "$3",
        "01",
        "1e",
        ".",
        "-",
        "+",
        "∞",
        "½",
        "٣",
    ),
    *(str(2**31), str(2**63), str(2**64), "1" + "0" * 30, "2024-02-30", "12:61"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.5, 1e308, 1e-320),
    *(
        float("inf"),
        float("nan"),
        [],
        {},
        [[]],
        [{}],
        {"": {}},
        [None],
        ["a"] * 50,
        [0] * 2000,
        {"a": 1},
        {"kind": "doxa result"},
    ),
]
DEEP = 3000  # brackets within brackets


def word(rng: random.Random) -> str:
    """A word or a number as text, or letters at random."""
    what = rng.random()
    if what < 0.45:
        return rng.choice(WORDS)
    if what < 0.9:
        return rng.choice(NUMBERS)
    return "".join(
        chr(rng.choice((rng.randrange(32, 127), rng.randrange(1, 0xD7FF)))) for _ in range(rng.randrange(12))
    )


def value(rng: random.Random) -> Any:
    """A value of any kind."""
    return rng.choice(VALUES) if rng.random() < 0.7 else word(rng)


def printable(text: str, length: int = 60) -> str:
    """A text for a report, whatever is in it."""
    return ascii(text if len(text) <= length else text[:length] + "…")
