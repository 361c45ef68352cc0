"""Claims and what became of them: counted, and as a table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from addresses import link, requirements
from cells import cards, text
from said import measured

if TYPE_CHECKING:
    from doxa_replicate import Artefact

NOT_RUN = "not run yet"
VERDICTS = {  # of one claim, and of several
    "PASS": ("holds", "hold"),
    "FAIL": ("does not hold", "do not hold"),
    "OPEN": ("stays open", "stay open"),
    NOT_RUN: ("is not run yet", "are not run yet"),
}
WORST_FIRST = ("FAIL", NOT_RUN, "OPEN", "PASS")
Row = Mapping[str, Any]  # a verdict, and the "artefact" it comes from


def result(artefact: Artefact, results: Path) -> dict[str, Any] | None:
    """The kept result at full size; None where there is none."""
    path = results / f"{artefact.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def judged(artefact: Artefact, found: Mapping[str, Any] | None) -> Iterator[Row]:
    """Each claim of an artefact with its verdict, which is that it is not run where there is no result."""
    if found is not None:
        yield from ({**verdict, "artefact": artefact.name} for verdict in found["verdicts"])
        return
    for claim in artefact.claims:
        yield {**claim.judged(None, None), "verdict": NOT_RUN, "artefact": artefact.name}


def every(artefacts: Mapping[str, Artefact], results: Path) -> Iterator[Row]:
    """Each claim of each artefact."""
    for artefact in artefacts.values():
        yield from judged(artefact, result(artefact, results))


def tally(artefacts: Mapping[str, Artefact], results: Path) -> Counter[str]:
    """How many claims have each verdict; one that several artefacts judge holds where it holds in all of them."""
    verdicts: dict[str, set[str]] = {}
    for row in every(artefacts, results):
        verdicts.setdefault(row["claim"], set()).add(row["verdict"])
    return Counter(next(each for each in WORST_FIRST if each in some) for some in verdicts.values())


def counted(found: Counter[str]) -> str:
    """What became of all claims, in a sentence."""
    parts = [f"{found[verdict]} {words[found[verdict] > 1]}" for verdict, words in VERDICTS.items() if found[verdict]]
    if not parts:
        return "No claim is judged yet."
    every = sum(found.values())
    return (
        f"Of {every} claim{'s' if every > 1 else ''} {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}."
    )


def as_table(rows: Sequence[Row], page: str, artefacts: Mapping[str, Artefact] | None = None) -> str:
    """A claim a line on a page, with a link to where it is shown if `artefacts` are given."""
    lines = [_line(row, page) for row in rows]
    heads = ["claim", "verdict", "what it says", "what was found"]
    if artefacts is not None:
        heads.append("shown in")
        lines = [[*line, link(artefacts[row["artefact"]])] for line, row in zip(lines, rows, strict=True)]
    return cards(heads, lines)


def badge(verdict: str) -> str:
    return f'<b class="verdict {verdict.partition(" ")[0].lower()}">{verdict}</b>'


def seeds(these: Sequence[int]) -> str:
    return f"{len(these)} seed{'s' if len(these) > 1 else ''}" if these else ""


def order(claim: str) -> list[tuple[int, str]]:
    """C-WU-3 before C-WU-21."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", claim)]


def _line(row: Row, page: str) -> list[str]:
    aside = "; ".join(each for each in (seeds(row["seeds"]), text(row["setting"])) if each)
    found = "–" if row["verdict"] == NOT_RUN else measured(row["value"], row["se"])
    return [
        requirements(text(row["claim"]), page),
        badge(row["verdict"]),
        f"{text(row['words'])} <small>{text(row['criterion'])}</small>",
        f"{found} <small>{aside}</small>" if aside else found,
    ]
