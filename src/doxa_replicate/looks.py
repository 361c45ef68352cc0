"""Which colour, dash and marker each part of a chart has, so that up to nine lines are told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from doxa.report.palette import INK, MUTED, SERIES, Style
from doxa_replicate.show import Area, Chart, ChartLine, Dots

DASH_PATTERNS = (
    (5.0, 2.0),
    (2.0, 2.0),
    (9.0, 2.0, 2.0, 2.0),
)  # of lines that are to be dashed, where they share a colour
MAX_MARKED_POINTS = 30  # points of a line, up to which each has its marker
RULE_STYLE = Style(INK, DASH_PATTERNS[0], "", "")  # what others are compared with
Part = ChartLine | Area | Dots


@dataclass(frozen=True)
class ChartStyles:
    """The styles of a chart's parts, in their order."""

    lines: Sequence[Style]
    areas: Sequence[Style]
    dots: Sequence[Style]


def chart_styles(chart: Chart) -> ChartStyles:
    """Parts that are alike share a colour, and dashes tell their lines apart.

    Where no two are alike, each has a colour and a dash of its own. A single dashed line like no other is a rule to
    compare with, and has the colour of ink.
    """
    parts: list[Part] = [*chart.lines, *chart.areas, *(dots for dots in chart.dots if dots.like is not None)]
    referenced_names = {part.like for part in parts}
    rules = [line for line in chart.lines if line.dashed and line.like is None and line.name not in referenced_names]
    rule = rules[0] if len(rules) == 1 else None
    colour_families = [_colour_family(part, parts) for part in parts]
    coloured_families = [name for name, part in zip(colour_families, parts, strict=True) if part is not rule]
    colour_indices = {name: place for place, name in enumerate(dict.fromkeys(coloured_families))}
    lines = [
        _line_style(line, colour_indices.get(family, 0), dash)
        for line, family, dash in zip(
            chart.lines, colour_families, _dashes(chart.lines, colour_families, colour_indices), strict=False
        )
    ]
    fill_styles = [SERIES[colour_indices[name] % len(SERIES)] for name in colour_families[len(lines) :]]
    dots = iter(fill_styles[len(chart.areas) :])
    return ChartStyles(
        [RULE_STYLE if line is rule else style for line, style in zip(chart.lines, lines, strict=True)],
        fill_styles[: len(chart.areas)],
        [Style(MUTED, (), ".", "") if dot_series.like is None else next(dots) for dot_series in chart.dots],
    )


def _colour_family(part: Part, parts: Sequence[Part]) -> str:
    """What a part takes its colour from: the end of the chain of likenesses; faint lines like nothing are all alike."""
    by_name = {named_part.name: named_part for named_part in reversed(parts)}
    visited = {part.name}
    while part.like is not None:
        name = part.like
        if name in visited or name not in by_name:
            return name
        visited.add(name)
        part = by_name[name]
    return "" if isinstance(part, ChartLine) and part.faint else part.name


def _line_style(line: ChartLine, colour_index: int, dash: tuple[float, ...]) -> Style:
    style = SERIES[colour_index % len(SERIES)]
    marked = not line.faint and len(line.x) <= MAX_MARKED_POINTS
    return Style(style.colour, dash, style.marker if marked else "", style.outline if marked else "")


def _dashes(
    lines: Sequence[ChartLine], families: Sequence[str], colour_indices: dict[str, int]
) -> list[tuple[float, ...]]:
    drawn_families = [name for name, line in zip(families, lines, strict=False) if not line.faint]
    colours_repeat = max(Counter(drawn_families).values(), default=0) > 1 or any(line.dashed for line in lines)
    counts: Counter[tuple[str, bool]] = Counter()
    dashes: list[tuple[float, ...]] = []
    for line, family in zip(lines, families, strict=False):
        index_in_family, colour_index = counts[family, line.dashed], colour_indices.get(family, 0)
        counts[family, line.dashed] += not line.faint
        if line.faint:
            dashes.append(())
        elif line.dashed:
            dashes.append(DASH_PATTERNS[index_in_family % len(DASH_PATTERNS)])
        else:
            dashes.append(
                SERIES[
                    ((index_in_family if colours_repeat else colour_index) + colour_index // len(SERIES)) % len(SERIES)
                ].dash
            )
    return dashes
