"""Results as one self-contained HTML page: no script, no request, the same bytes every time."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import jinja2

from doxa.errors import BadInput
from doxa.report import provenance
from doxa.report.figures import figures
from doxa.report.opening import opening
from doxa.report.runs import ReportedRun, RunGroup, group_runs
from doxa.report.table import full_table, main_table
from doxa.report.text import shorten
from doxa.results import Result, first_problem, to_plain_json, write_text_atomic

FINDING = 600  # characters of a finding
TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("doxa.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def page(results: Sequence[Result]) -> str:
    """The page of any number of results, those on the same data compared with each other."""
    if isinstance(results, dict) or not results:
        raise BadInput("a report needs a list of at least one result, as read_result or evidence gives it")
    plain_results = [to_plain_json(result) for result in results]
    for position, result in enumerate(plain_results, start=1):
        problem = first_problem(result)
        if problem is not None:
            raise BadInput(f"number {position} of the results to report is none: {problem}")
    groups = group_runs(plain_results)
    sections = [_section(group) for group in groups]
    names = [f"{_join_names([run.name for run in group.runs])} on {group.title}" for group in groups]
    title = shorten(f"Doxa report: {'; '.join(names)}", 120)
    return TEMPLATES.get_template("page.html").render(title=title, sections=sections, total=len(plain_results))


def write(results: Sequence[Result], path: str | PathLike[str]) -> None:
    """Write the page of the results to a file, whole or not at all."""
    write_text_atomic(path, page(results))


def _section(group: RunGroup) -> dict[str, Any]:
    runs = group.runs
    return {
        "group": group,
        "about": _describe_data(group),
        "opening": opening(group),
        "table": main_table(runs),
        "full_table": full_table(runs),
        "error": _error_note(runs),
        "findings": [(run, [shorten(finding, FINDING) for finding in run.result.get("findings", [])]) for run in runs],
        "figures": figures(runs, f"data{group.number}"),
        "settings": provenance.settings(runs),
        "stamps": provenance.stamps(runs),
    }


def _describe_data(group: RunGroup) -> list[tuple[str, str]]:
    """What is known of the data, but for its name."""
    facts = []
    for key in ("task", "rows", "classes", "source", "licence"):
        value = group.about.get(key)
        if isinstance(value, list):
            value = f"{len(value)}: {', '.join(shorten(v, 24) for v in value[:12])}{' …' if len(value) > 12 else ''}"
        if value is not None:
            facts.append(
                (
                    "rows judged" if key == "rows" else key,
                    shorten(f"{value:,}" if isinstance(value, int) else value, 300),
                )
            )
    return facts


def _error_note(runs: Sequence[ReportedRun]) -> str:
    """What ± stands for."""
    kinds = {(str(s.get("over")), s.get("count")) for run in runs for s in run.scores.values() if s.get("error")}
    if len(kinds) != 1:
        return "± is the standard error of each run, over seeds or draws" if kinds else ""
    over, count = kinds.pop()
    meaning = "the standard error over" if over == "seeds" else "the Monte-Carlo error of"
    unit = "seeds" if over == "seeds" else "draws of the weights"
    return f"± is {meaning} {count} {unit}" if isinstance(count, int) else f"± is {meaning} {unit}"


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
