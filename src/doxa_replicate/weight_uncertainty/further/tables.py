"""Tables of what entrants came to: their scores, their differences from one of them, and what was tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doxa_replicate.over_seeds import format_with_error, mean, summary
from doxa_replicate.show import ResultTable
from doxa_replicate.verdicts import FAIL, PASS

WORDS = {PASS: "lower", FAIL: "higher"}


def score_table(title: str, entries: Mapping[str, Any], headers: Mapping[str, tuple[str, int]]) -> ResultTable:
    """Means over seeds with their standard errors; `headers` say how each score is called, and its places."""
    rows = [
        [
            name,
            entry["chosen"],
            *(format_with_error(summary(entry["scores"][key]), n) for key, (_, n) in headers.items()),
        ]
        for name, entry in entries.items()
    ]
    columns = ("learned by", "chosen on validation rows", *(header for header, _ in headers.values()))
    return ResultTable(title, columns, rows, text_columns=2, caption="Test rows; mean ± standard error over seeds.")


def difference_table(
    reference: str, differences: Mapping[str, Any], headers: Mapping[str, tuple[str, int]]
) -> ResultTable:
    """Paired differences with their 95 % intervals, and on which side of zero they lie."""
    rows = [
        [name, *(_difference(by_score[key], places) for key, (_, places) in headers.items())]
        for name, by_score in differences.items()
    ]
    columns = ("learned by", *(header for header, _ in headers.values()))
    caption = "Seed by seed, with the 95 % interval of the mean; undecided where it holds zero."
    return ResultTable(f"Less those of {reference}", columns, rows, caption=caption)


def _difference(part: Mapping[str, Any], places: int) -> str:
    if part["mean"] is None or part["low"] is None:
        return "–"
    numbers = [f"{part[key]:.{places}f}".replace("-", "−") for key in ("mean", "low", "high")]
    verdict = "the same" if not any(part["each"]) else WORDS.get(part["verdict"], "undecided")
    return f"{numbers[0]} [{numbers[1]}, {numbers[2]}], {verdict}"


def tried_table(entries: Mapping[str, Any]) -> ResultTable:
    """The validation NLL of every setting, means over seeds; the chosen one is bold."""
    rows = []
    for name, entry in entries.items():
        for setting, values in entry["validation"].items():
            number = f"{mean(values):.4f}"
            rows.append([name, setting, f"**{number}**" if setting == entry["chosen"] else number])
    at_edge = [
        name for name, entry in entries.items() if len(entry["validation"]) > 1 and entry["chosen"] in _ends(entry)
    ]
    caption = f"The best lies at an end of what was tried: {', '.join(at_edge)}." if at_edge else ""
    headers = ("learned by", "setting", "NLL")
    return ResultTable("Validation NLL of what was tried", headers, rows, text_columns=2, caption=caption)


def _ends(entry: Mapping[str, Any]) -> tuple[str, str]:
    first, *_, last = entry["validation"]
    return first, last
