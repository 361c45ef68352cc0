"""Which colour, dash and marker each part of a chart has, so that up to nine lines are told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from doxa.report.palette import INK, MUTED, SERIES, Style
from doxa_replicate.show import Area, Chart, Dots, Line

DASHED = ((5.0, 2.0), (2.0, 2.0), (9.0, 2.0, 2.0, 2.0))  # of lines that are to be dashed, where they share a colour
MARKED = 30  # points of a line, up to which each has its marker
RULE = Style(INK, DASHED[0], "", "")  # what others are compared with
Part = Line | Area | Dots


@dataclass(frozen=True)
class Looks:
    """The styles of a chart's parts, in their order."""

    lines: Sequence[Style]
    areas: Sequence[Style]
    dots: Sequence[Style]


def looks(chart: Chart) -> Looks:
    """Parts that are alike share a colour, and dashes tell their lines apart.

    Where no two are alike, each has a colour and a dash of its own. A single dashed line like no other is a rule to
    compare with, and has the colour of ink.
    """
    parts: list[Part] = [*chart.lines, *chart.areas, *(dots for dots in chart.dots if dots.like is not None)]
    likened = {part.like for part in parts}
    rules = [line for line in chart.lines if line.dashed and line.like is None and line.name not in likened]
    rule = rules[0] if len(rules) == 1 else None
    families = [_family(part, parts) for part in parts]
    coloured = [name for name, part in zip(families, parts, strict=True) if part is not rule]
    places = {name: place for place, name in enumerate(dict.fromkeys(coloured))}
    lines = [
        _of_line(line, places.get(family, 0), dash)
        for line, family, dash in zip(chart.lines, families, _dashes(chart.lines, families, places), strict=False)
    ]
    others = [SERIES[places[name] % len(SERIES)] for name in families[len(lines) :]]
    dots = iter(others[len(chart.areas) :])
    return Looks(
        [RULE if line is rule else style for line, style in zip(chart.lines, lines, strict=True)],
        others[: len(chart.areas)],
        [Style(MUTED, (), ".", "") if each.like is None else next(dots) for each in chart.dots],
    )


def _family(part: Part, parts: Sequence[Part]) -> str:
    """What a part takes its colour from: the end of the chain of likenesses; faint lines like nothing are all alike."""
    by_name = {each.name: each for each in reversed(parts)}
    seen = {part.name}
    while part.like is not None:
        name = part.like
        if name in seen or name not in by_name:
            return name
        seen.add(name)
        part = by_name[name]
    return "" if isinstance(part, Line) and part.faint else part.name


def _of_line(line: Line, place: int, dash: tuple[float, ...]) -> Style:
    style = SERIES[place % len(SERIES)]
    marked = not line.faint and len(line.x) <= MARKED
    return Style(style.colour, dash, style.marker if marked else "", style.outline if marked else "")


def _dashes(lines: Sequence[Line], families: Sequence[str], places: dict[str, int]) -> list[tuple[float, ...]]:
    drawn = [name for name, line in zip(families, lines, strict=False) if not line.faint]
    alike = max(Counter(drawn).values(), default=0) > 1 or any(line.dashed for line in lines)
    before: Counter[tuple[str, bool]] = Counter()
    found: list[tuple[float, ...]] = []
    for line, family in zip(lines, families, strict=False):
        nth, place = before[family, line.dashed], places.get(family, 0)
        before[family, line.dashed] += not line.faint
        if line.faint:
            found.append(())
        elif line.dashed:
            found.append(DASHED[nth % len(DASHED)])
        else:
            found.append(SERIES[((nth if alike else place) + place // len(SERIES)) % len(SERIES)].dash)
    return found
