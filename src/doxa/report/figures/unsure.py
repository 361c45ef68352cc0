"""The inputs it is least sure of, with what it thought of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from doxa.report.figures.panel import Panel
from doxa.report.numbers import format_plain
from doxa.report.pixels import png_data_url
from doxa.report.runs import ReportedRun
from doxa.report.text import shorten

SECTION = "unsure"
TITLE = "What it is least sure of"
LEAD = "The inputs with the most doubtful predictions: the three likeliest classes of each, and the true label in bold."
BARS, LONGEST = 3, 14  # classes, and characters of a class
MOST_INPUTS = 100

INPUT = Markup(
    '<div class="input"><img src="{address}" alt="Image of {label}" width="64" height="64">'
    '<ol class="bars">{bars}</ol></div>'
)
BAR = Markup(
    '<li{true}><span class="class"><bdi>{name}</bdi></span><span class="bar"><i style="width:{width}%"></i></span>'
    '<span class="share">{share} %</span></li>'
)


def panels(runs: Sequence[ReportedRun], key: str) -> list[Panel]:
    """A panel of inputs for each run."""
    return [_panel(run) for run in runs if run.has_section(SECTION)]


def _panel(run: ReportedRun) -> Panel:
    inputs = run.result[SECTION][:MOST_INPUTS]
    classes = run.result.get("data", {}).get("classes")
    names = classes if isinstance(classes, list) else []
    inputs_markup = Markup("").join(_input_markup(row, names) for row in inputs)
    correct = sum(
        max(range(len(r["probabilities"])), key=lambda c: r["probabilities"][c] or 0.0) == r["label"]
        for r in inputs
        if r["probabilities"]
    )
    caption = f"{correct} of these {len(inputs)} it gets right."
    return Panel(Markup('<div class="inputs">{}</div>').format(inputs_markup), caption, [], title=run.name)


def _input_markup(row: dict[str, Any], names: Sequence[Any]) -> Markup:
    shares = [p or 0.0 for p in row["probabilities"]]
    likeliest = sorted(range(len(shares)), key=lambda c: -shares[c])[:BARS]
    if isinstance(row["label"], int) and 0 <= row["label"] < len(shares) and row["label"] not in likeliest:
        likeliest[-1:] = [row["label"]]
    bars = Markup("").join(
        BAR.format(
            true=Markup(' class="true"') if c == row["label"] else "",
            name=_class_name(c, names),
            width=f"{min(100.0, max(0.0, 100 * shares[c])):.1f}",
            share=format_plain(100 * shares[c], 0),
        )
        for c in likeliest
    )
    return INPUT.format(address=png_data_url(row["image"]), label=_class_name(row["label"], names), bars=bars)


def _class_name(label: Any, names: Sequence[Any]) -> str:
    has_name = isinstance(label, int) and 0 <= label < len(names)
    return shorten(names[label] if has_name else label, LONGEST)
