"""Claims and what became of them: counted, and as a table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from addresses import link, link_requirements
from cells import cards, text
from formatting import duration, format_measured

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
HEADLINE = "as run"  # the column that counts, where an artefact has it; the others stand beside it
Row = Mapping[str, Any]  # a verdict, and the "artefact" it comes from


def load_result(artefact: Artefact, results: Path) -> dict[str, Any] | None:
    """The kept result at full size; None where there is none."""
    path = results / f"{artefact.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def verdict_rows(artefact: Artefact, result: Mapping[str, Any] | None) -> Iterator[Row]:
    """Each claim of an artefact with its verdict, which is that it is not run where there is no result."""
    if result is not None:
        per_seed = result["seconds"] / len(result["seeds"]) if result["seeds"] else None
        origin = {"artefact": artefact.name, "seconds_per_seed": per_seed}
        yield from ({**verdict, **origin} for verdict in result["verdicts"])
        return
    for claim in artefact.claims:
        yield {**claim.judge(None, None), "verdict": NOT_RUN, "artefact": artefact.name}


def all_verdict_rows(artefacts: Mapping[str, Artefact], results: Path) -> Iterator[Row]:
    """Each claim of each artefact."""
    for artefact in artefacts.values():
        yield from verdict_rows(artefact, load_result(artefact, results))


def tally(artefacts: Mapping[str, Artefact], results: Path) -> Counter[str]:
    """How many claims have each verdict; one that several artefacts judge holds where it holds in all of them."""
    verdicts: dict[str, set[str]] = {}
    for artefact in artefacts.values():
        for row in headlines([*verdict_rows(artefact, load_result(artefact, results))]):
            verdicts.setdefault(row["claim"], set()).add(row["verdict"])
    return Counter(
        next(verdict for verdict in WORST_FIRST if verdict in claim_verdicts) for claim_verdicts in verdicts.values()
    )


def headlines(rows: Sequence[Row]) -> list[Row]:
    """The rows of an artefact that its claims are counted by: those of the first column, where a claim has it."""
    with_headline = {row["claim"] for row in rows if row.get("column") == HEADLINE}
    return [row for row in rows if row["claim"] not in with_headline or row.get("column") == HEADLINE]


def count_sentence(counts: Counter[str]) -> str:
    """What became of all claims, in a sentence."""
    parts = [
        f"{counts[verdict]} {phrases[counts[verdict] > 1]}" for verdict, phrases in VERDICTS.items() if counts[verdict]
    ]
    if not parts:
        return "No claim is judged yet."
    total = sum(counts.values())
    return (
        f"Of {total} claim{'s' if total > 1 else ''} {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}."
    )


def as_table(rows: Sequence[Row], page: str, artefacts: Mapping[str, Artefact] | None = None) -> str:
    """A claim a line on a page, with a link to where it is shown if `artefacts` are given."""
    lines = [_claim_cells(row, page) for row in rows]
    headers = ["claim", "verdict", "what it says", "what was found"]
    if artefacts is not None:
        headers.append("shown in")
        lines = [[*line, link(artefacts[row["artefact"]])] for line, row in zip(lines, rows, strict=True)]
    return cards(headers, lines)


def badge(verdict: str) -> str:
    return f'<b class="verdict {verdict.partition(" ")[0].lower()}">{verdict}</b>'


def seeds_text(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}" if seeds else ""


def claim_order(claim: str) -> list[tuple[int, str]]:
    """C-WU-3 before C-WU-21."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", claim)]


def _claim_cells(row: Row, page: str) -> list[str]:
    notes = (text(row.get("column", "")), seeds_text(row["seeds"]), text(row["setting"]), seeds_needed_text(row))
    small_print = "; ".join(each for each in notes if each)
    if "parts" in row:
        measured_text = "; ".join(_evidence_text(name, part) for name, part in row["parts"].items())
    else:
        measured_text = "–" if row["verdict"] == NOT_RUN else format_measured(row["value"], row["se"])
    return [
        link_requirements(text(row["claim"]), page),
        badge(row["verdict"]),
        f"{text(row['words'])} <small>{text(row['criterion'])}</small>",
        f"{measured_text} <small>{small_print}</small>" if small_print else measured_text,
    ]


def seeds_needed_text(row: Row) -> str:
    """How many seeds would decide what is open, and what they would take on the device that the others ran on."""
    needed = [part["seeds_needed"] for part in row.get("parts", {}).values() if part["verdict"] == "OPEN"]
    if not needed or row["verdict"] != "OPEN":
        return ""
    if None in needed:
        return "no number of seeds in sight"
    per_seed, more = row.get("seconds_per_seed"), max(needed) - len(row["seeds"])
    time_text = f", {duration(per_seed * more)} more" if per_seed else ""
    return f"about {max(needed)} seeds would decide it{time_text}"


def _evidence_text(name: str, part: Mapping[str, Any]) -> str:
    """A part of a claim: its mean, the 95 % interval, and the border."""
    interval_text = "" if part["low"] is None else f" [{format_measured(part['low'])}, {format_measured(part['high'])}]"
    borders = " and ".join(f"{word} {format_measured(part[word])}" for word in ("above", "below") if word in part)
    mean_text = "∞" if part["mean"] is None else format_measured(part["mean"])
    mark = "" if part["verdict"] == "PASS" else f", {VERDICTS[part['verdict']][0]}"
    return f"{text(name)}: {mean_text}{interval_text}, to lie {borders}{mark}"
