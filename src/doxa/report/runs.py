"""Results as a page shows them: names that are safe to print, a style for each, one group for the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from doxa.report.palette import SERIES, Style
from doxa.report.text import cleaned, shortened
from doxa.results import Result


@dataclass(frozen=True)
class Run:
    """A result with its name, and its place among the names of the page: one name, one style."""

    result: Result
    name: str
    full: str
    place: int

    @property
    def said(self) -> str:
        """The name inside a sentence, which it must not turn around."""
        return f"\N{FIRST STRONG ISOLATE}{self.name}\N{POP DIRECTIONAL ISOLATE}"

    @property
    def style(self) -> Style:
        return SERIES[self.place % len(SERIES)]

    @property
    def score(self) -> dict[str, dict[str, Any]]:
        return self.result["scores"]

    @property
    def seeds(self) -> int:
        """How many seeds its scores are over; 1 where they are over draws."""
        return max((s.get("count", 1) for s in self.score.values() if s.get("over") == "seeds"), default=1)

    def has(self, section: str) -> bool:
        return bool(self.result.get(section))

    def value(self, score: str) -> float | None:
        return self.score.get(score, {}).get("value")

    def error(self, score: str) -> float | None:
        """Its standard error; None where it is not known, and so where it is 0 without seeds to have agreed."""
        found = self.score.get(score, {})
        return found.get("error") if found.get("over") == "seeds" else found.get("error") or None


@dataclass(frozen=True)
class Group:
    """Runs that were judged on the same rows; `apart`, where other groups have other rows of the same data."""

    title: str
    full: str
    place: int
    about: dict[str, Any]
    runs: tuple[Run, ...]
    apart: bool = False

    @property
    def seeds(self) -> int:
        return min(run.seeds for run in self.runs)


def grouped(results: Sequence[Result]) -> list[Group]:
    """The results by the rows they were judged on, both in the order given."""
    sets: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        about = result.get("data", {})
        rows = about.get("digest") or about.get("rows", "")
        sets.setdefault((str(about.get("name", "")), str(about.get("task", "")), str(rows)), []).append(result)
    kinds = Counter(key[:2] for key in sets)
    apart = [kinds[key[:2]] > 1 for key in sets]
    abouts = [of[0].get("data", {}) for of in sets.values()]
    titles = _told_apart([_title(about, alone) for about, alone in zip(abouts, apart, strict=True)])
    places: dict[str, int] = {}
    return [
        Group(title, cleaned(about.get("name", "")), k, about, _runs(of, places), alone)
        for k, (title, about, of, alone) in enumerate(zip(titles, abouts, sets.values(), apart, strict=True), start=1)
    ]


def _title(about: dict[str, Any], apart: bool) -> str:
    """The name of the data, with the number of rows where there are others of it."""
    name, rows = shortened(about.get("name", "")) or "data without a name", about.get("rows")
    return f"{name}, {rows:,} {'row' if rows == 1 else 'rows'}" if apart and isinstance(rows, int) else name


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names that occur more than once with a number each."""
    total, seen = Counter(names), Counter[str]()
    shown = []
    for name in names:
        seen[name] += 1
        shown.append(name if total[name] == 1 else f"{name} ({seen[name]})")
    return shown


def _runs(results: Sequence[Result], places: dict[str, int]) -> tuple[Run, ...]:
    names = _told_apart([shortened(result["name"]) or "unnamed" for result in results])
    return tuple(
        Run(result, name, cleaned(result["name"]), places.setdefault(name, len(places)))
        for result, name in zip(results, names, strict=True)
    )


def batches(runs: Sequence[Run], section: str) -> list[list[Run]]:
    """The runs that have a section, no two of one style in a batch."""
    found: dict[int, list[Run]] = {}
    for run in runs:
        if run.has(section):
            found.setdefault(run.place // len(SERIES), []).append(run)
    return list(found.values())
