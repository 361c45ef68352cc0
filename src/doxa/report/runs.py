"""Results as a page shows them: names that are safe to print, a style for each, one group for the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from doxa.report.palette import SERIES, Style
from doxa.report.plausible import plausible
from doxa.report.text import clean_text, shorten
from doxa.results import Result


@dataclass(frozen=True)
class ReportedRun:
    """A result with its name, and its place among the names of the page: one name, one style."""

    result: Result
    name: str
    full_name: str
    series_index: int

    @property
    def name_in_sentence(self) -> str:
        """The name inside a sentence, which it must not turn around."""
        return f"\N{FIRST STRONG ISOLATE}{self.name}\N{POP DIRECTIONAL ISOLATE}"

    @property
    def style(self) -> Style:
        return SERIES[self.series_index % len(SERIES)]

    @property
    def scores(self) -> dict[str, dict[str, Any]]:
        return self.result["scores"]

    @property
    def seeds(self) -> int:
        """How many seeds its scores are over; 1 where they are over draws."""
        return max((s.get("count", 1) for s in self.scores.values() if s.get("over") == "seeds"), default=1)

    def has_section(self, section: str) -> bool:
        return bool(self.result.get(section))

    def value(self, score: str) -> float | None:
        return self.scores.get(score, {}).get("value")

    def error(self, score: str) -> float | None:
        """Its standard error; None where it is not known, and so where it is 0 without seeds to have agreed."""
        entry = self.scores.get(score, {})
        error = entry.get("error")
        if error is None or error < 0:
            return None
        return error if entry.get("over") == "seeds" else error or None


@dataclass(frozen=True)
class RunGroup:
    """Runs that were judged on the same rows; `has_other_rows`, where other groups have other rows of the same data."""

    title: str
    full_name: str
    number: int
    about: dict[str, Any]
    runs: tuple[ReportedRun, ...]
    has_other_rows: bool = False

    @property
    def seeds(self) -> int:
        return min(run.seeds for run in self.runs)


def group_runs(results: Sequence[Result]) -> list[RunGroup]:
    """The results by the rows they were judged on, both in the order given."""
    results = [plausible(result) for result in results]
    results_by_rows: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        about = result.get("data", {})
        rows = about.get("digest") or about.get("rows", "")
        results_by_rows.setdefault((str(about.get("name", "")), str(about.get("task", "")), str(rows)), []).append(
            result
        )
    groups_by_data = Counter(key[:2] for key in results_by_rows)
    has_other_rows = [groups_by_data[key[:2]] > 1 for key in results_by_rows]
    abouts = [group_results[0].get("data", {}) for group_results in results_by_rows.values()]
    titles = _number_duplicates(
        [_title(about, other_rows) for about, other_rows in zip(abouts, has_other_rows, strict=True)]
    )
    series_indices: dict[str, int] = {}
    return [
        RunGroup(title, clean_text(about.get("name", "")), k, about, _runs(group_results, series_indices), other_rows)
        for k, (title, about, group_results, other_rows) in enumerate(
            zip(titles, abouts, results_by_rows.values(), has_other_rows, strict=True), start=1
        )
    ]


def _title(about: dict[str, Any], has_other_rows: bool) -> str:
    """The name of the data, with the number of rows where there are others of it."""
    name, rows = shorten(about.get("name", "")) or "data without a name", about.get("rows")
    return f"{name}, {rows:,} {'row' if rows == 1 else 'rows'}" if has_other_rows and isinstance(rows, int) else name


def _number_duplicates(names: Sequence[str]) -> list[str]:
    """Names that occur more than once with a number each."""
    total, used = Counter(names), Counter[str]()
    numbered = []
    for name in names:
        used[name] += 1
        numbered.append(name if total[name] == 1 else f"{name} ({used[name]})")
    return numbered


def _runs(results: Sequence[Result], series_indices: dict[str, int]) -> tuple[ReportedRun, ...]:
    names = _number_duplicates([shorten(result["name"]) or "unnamed" for result in results])
    return tuple(
        ReportedRun(result, name, clean_text(result["name"]), series_indices.setdefault(name, len(series_indices)))
        for result, name in zip(results, names, strict=True)
    )


def style_batches(runs: Sequence[ReportedRun], section: str) -> list[list[ReportedRun]]:
    """The runs that have a section, no two of one style in a batch."""
    runs_by_batch: dict[int, list[ReportedRun]] = {}
    for run in runs:
        if run.has_section(section):
            runs_by_batch.setdefault(run.series_index // len(SERIES), []).append(run)
    return list(runs_by_batch.values())
