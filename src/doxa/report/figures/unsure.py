"""The inputs it is least sure of, with what it thought of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from doxa.report.figures.panel import Panel
from doxa.report.pixels import data_address
from doxa.report.runs import Run
from doxa.report.text import shortened

SECTION = "unsure"
TITLE = "What it is least sure of"
LEAD = "The inputs with the most doubtful predictions: the three likeliest classes of each, and the true label in bold."
BARS, LONGEST = 3, 14  # classes, and characters of a class

INPUT = Markup(
    '<div class="input"><img src="{address}" alt="Image of {label}" width="64" height="64">'
    '<ol class="bars">{bars}</ol></div>'
)
BAR = Markup(
    '<li{true}><span class="class"><bdi>{name}</bdi></span><span class="bar"><i style="width:{width}%"></i></span>'
    '<span class="share">{share} %</span></li>'
)


def panels(runs: Sequence[Run], key: str) -> list[Panel]:
    """A panel of inputs for each run."""
    return [_panel(run) for run in runs if run.has(SECTION)]


def _panel(run: Run) -> Panel:
    inputs = run.result[SECTION]
    classes = run.result.get("data", {}).get("classes")
    names = classes if isinstance(classes, list) else []
    drawn = Markup("").join(_input(row, names) for row in inputs)
    right = sum(
        max(range(len(r["probabilities"])), key=lambda c: r["probabilities"][c] or 0.0) == r["label"]
        for r in inputs
        if r["probabilities"]
    )
    says = f"{right} of these {len(inputs)} it gets right."
    return Panel(Markup('<div class="inputs">{}</div>').format(drawn), says, [], title=run.name)


def _input(row: dict[str, Any], names: Sequence[Any]) -> Markup:
    shares = [p or 0.0 for p in row["probabilities"]]
    likeliest = sorted(range(len(shares)), key=lambda c: -shares[c])[:BARS]
    if isinstance(row["label"], int) and row["label"] < len(shares) and row["label"] not in likeliest:
        likeliest[-1:] = [row["label"]]
    bars = Markup("").join(
        BAR.format(
            true=Markup(' class="true"') if c == row["label"] else "",
            name=_class(c, names),
            width=f"{min(100.0, max(0.0, 100 * shares[c])):.1f}",
            share=f"{100 * shares[c]:.0f}",
        )
        for c in likeliest
    )
    return INPUT.format(address=data_address(row["image"]), label=_class(row["label"], names), bars=bars)


def _class(label: Any, names: Sequence[Any]) -> str:
    named = isinstance(label, int) and 0 <= label < len(names)
    return shortened(names[label] if named else label, LONGEST)
