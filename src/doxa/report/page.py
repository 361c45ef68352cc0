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
from doxa.report.runs import Group, Run, grouped
from doxa.report.table import main_table, whole_table
from doxa.report.text import shortened
from doxa.results import Result, plain, trouble, write_whole

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
    checked = [plain(result) for result in results]
    for place, result in enumerate(checked, start=1):
        wrong = trouble(result)
        if wrong is not None:
            raise BadInput(f"number {place} of the results to report is none: {wrong}")
    groups = grouped(checked)
    sections = [_section(group) for group in groups]
    names = [f"{_listed([run.name for run in group.runs])} on {group.title}" for group in groups]
    title = shortened(f"Doxa report: {'; '.join(names)}", 120)
    return TEMPLATES.get_template("page.html").render(title=title, sections=sections, total=len(checked))


def write(results: Sequence[Result], path: str | PathLike[str]) -> None:
    """Write the page of the results to a file, whole or not at all."""
    write_whole(path, page(results))


def _section(group: Group) -> dict[str, Any]:
    runs = group.runs
    return {
        "group": group,
        "about": _about(group),
        "opening": opening(group),
        "table": main_table(runs),
        "whole": whole_table(runs),
        "error": _error(runs),
        "findings": [(run, [shortened(said, FINDING) for said in run.result.get("findings", [])]) for run in runs],
        "figures": figures(runs, f"data{group.place}"),
        "settings": provenance.settings(runs),
        "stamps": provenance.stamps(runs),
    }


def _about(group: Group) -> list[tuple[str, str]]:
    """What is known of the data, but for its name."""
    said = []
    for key in ("task", "rows", "classes", "source", "licence"):
        value = group.about.get(key)
        if isinstance(value, list):
            value = f"{len(value)}: {', '.join(shortened(v, 24) for v in value[:12])}{' …' if len(value) > 12 else ''}"
        if value is not None:
            said.append(
                (
                    "rows judged" if key == "rows" else key,
                    shortened(f"{value:,}" if isinstance(value, int) else value, 300),
                )
            )
    return said


def _error(runs: Sequence[Run]) -> str:
    """What ± stands for."""
    kinds = {(s.get("over"), s.get("count")) for run in runs for s in run.score.values() if s.get("error")}
    if len(kinds) != 1:
        return "± is the standard error of each run, over seeds or draws" if kinds else ""
    over, count = kinds.pop()
    meaning = "the standard error over" if over == "seeds" else "the Monte-Carlo error of"
    what = "seeds" if over == "seeds" else "draws of the weights"
    return f"± is {meaning} {count} {what}" if isinstance(count, int) else f"± is {meaning} {what}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
