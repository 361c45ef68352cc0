"""Draw who knows whom: `python tools/picture.py` writes docs/images/rooms.svg from the imports in `src/doxa`.

A room stands above all that it imports. An import that leads over another room is left out (the transitive reduction):
if learners know gradients and gradients know the engine, no line leads from learners to the engine.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import mean

from house import arrows

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"

# The six free places of the sentence, and what a learner is made of.
SENTENCE = {"nets", "priors", "posteriors", "likelihoods", "noise", "learners", "judge", "kl_weights", "rates"}
ENGINE = {"engine", "gradients", "optimisers", "collectors"}
ASIDE = {"__init__", "errors", "registry", "version"}  # known by everybody, or knowing everybody

WIDTH, ROW, HEIGHT, PAD, GAP, LETTER = 960, 58, 30, 16, 14, 7.3  # pixels

STYLE = """
  text { font: 13px ui-sans-serif, system-ui, sans-serif; text-anchor: middle; fill: #1c2733; }
  rect { fill: #eef1f4; stroke: #9aa7b4; }
  .sentence rect { fill: #d7e8dc; stroke: #4f8f6b; }
  .engine rect { fill: #dfe6f7; stroke: #5a78bd; }
  path { fill: none; stroke: #8896a5; stroke-width: 1; opacity: .75; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6ebf0; }
    rect { fill: #2a323b; stroke: #66727f; }
    .sentence rect { fill: #21402f; stroke: #5fa37e; }
    .engine rect { fill: #26345a; stroke: #7d98dc; }
    path { stroke: #7c8896; }
  }
"""


def reduced(known: dict[str, set[str]]) -> dict[str, set[str]]:
    """The transitive reduction of an acyclic graph: only the arrows that no longer path stands for."""

    @cache
    def reached(room: str) -> frozenset[str]:
        return frozenset().union(*({below} | reached(below) for below in known[room]))

    return {
        room: {one for one in below if not any(one in reached(other) for other in below if other != one)}
        for room, below in known.items()
    }


@dataclass(frozen=True)
class Graph:
    """Rooms by storey, roof first, and every line as the stations that it passes, one a storey.

    A room stands right below the lowest one that knows it. Between rooms that are storeys apart a line takes a place of
    its own in each storey, so that it leads round the rooms there and not behind them.
    """

    rows: list[list[str]]
    lines: list[list[str]]
    beside: dict[str, list[str]]

    @staticmethod
    def of(known: dict[str, set[str]]) -> Graph:
        @cache
        def depth(room: str) -> int:
            return 1 + max((depth(above) for above, below in known.items() if room in below), default=-1)

        rows: list[list[str]] = [[] for _ in range(1 + max(map(depth, known)))]
        for room in sorted(known):
            rows[depth(room)].append(room)
        lines = []
        for room, below in sorted(reduced(known).items()):
            for other in sorted(below):
                passed = {storey: f"{room}>{other}>{storey}" for storey in range(depth(room) + 1, depth(other))}
                for storey, station in passed.items():
                    rows[storey].append(station)
                lines.append([room, *passed.values(), other])
        beside: dict[str, list[str]] = {}
        for line in lines:
            for upper, lower in pairwise(line):
                beside.setdefault(upper, []).append(lower)
                beside.setdefault(lower, []).append(upper)
        return Graph(rows, lines, beside)

    def placed(self) -> dict[str, float]:
        """The middle of every station: near what it is joined to. Sugiyama, Tagawa & Toda (1981)."""
        place = {room: WIDTH * (i + 1) / (len(row) + 1) for row in self.rows for i, room in enumerate(row)}

        def wished(room: str) -> float:
            return mean([place[room], *(place[other] for other in self.beside.get(room, []))])

        for _ in range(30):  # first the order, in even steps
            for row in self.rows:
                row.sort(key=wished)
                place |= {room: WIDTH * (i + 1) / (len(row) + 1) for i, room in enumerate(row)}
        for _ in range(60):  # then the places, with the order as it is
            for row in self.rows:
                place |= _apart(row, [wished(room) for room in row])
        first = min(place[room] - width(room) / 2 for room in place)
        return {room: x - first + PAD for room, x in place.items()}


def width(room: str) -> float:
    return 2.0 if ">" in room else len(room) * LETTER + 2 * PAD


def _apart(row: list[str], wished: list[float]) -> dict[str, float]:
    """Places near those wished for, in the same order, with room between neighbours."""
    least = [(width(a) + width(b)) / 2 + GAP for a, b in pairwise(row)]
    right, left = [*wished], [*wished]
    for i, gap in enumerate(least, 1):
        right[i] = max(right[i], right[i - 1] + gap)
    for i in range(len(row) - 2, -1, -1):
        left[i] = min(left[i], left[i + 1] - least[i])
    return {room: (a + b) / 2 for room, a, b in zip(row, left, right, strict=True)}


def drawn(known: dict[str, set[str]]) -> str:
    """The picture as SVG."""
    graph = Graph.of(known)
    place, storey = graph.placed(), {room: number for number, row in enumerate(graph.rows) for room in row}
    boxes = {room: (place[room], PAD + storey[room] * ROW) for room in place}  # middle, top
    wide = max(x + width(room) / 2 for room, x in place.items()) + PAD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {len(graph.rows) * ROW + PAD}" role="img">',
        "<title>The rooms of Doxa: each stands above all that it imports</title>",
        f"<style>{STYLE}</style>",
        *(_line([boxes[station] for station in line]) for line in graph.lines),
    ]
    for room, (x, y) in sorted(boxes.items()):
        if ">" in room:
            continue
        kind = "sentence" if room in SENTENCE else "engine" if room in ENGINE else "other"
        parts.append(
            f'<g class="{kind}"><rect x="{x - width(room) / 2:.0f}" y="{y}" width="{width(room):.0f}" '
            f'height="{HEIGHT}" rx="6"/><text x="{x:.0f}" y="{y + 20}">{escape(room)}</text></g>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _line(stations: list[tuple[float, float]]) -> str:
    """A line through the middles of its stations."""
    x, y = stations[0]
    y += HEIGHT
    path = f"M{x:.0f} {y:.0f}"
    for number, (to, top) in enumerate(stations[1:], 2):
        bend = (top - y) / 2
        path += f"C{x:.0f} {y + bend:.0f} {to:.0f} {top - bend:.0f} {to:.0f} {top:.0f}"
        x, y = to, top
        if number < len(stations):
            y += HEIGHT
            path += f"V{y:.0f}"
    return f'<path d="{path}"/>'


def rooms(source: Path) -> dict[str, set[str]]:
    """Every room of the library with the rooms that it imports."""
    known = {room: set(below) - ASIDE for room, below in arrows(source).items() if room not in ASIDE}
    for room in set().union(*known.values()) - set(known):
        known[room] = set()
    folders = {path.parent.name for path in (source / "doxa").glob("*/__init__.py")}
    return {room: known.get(room, set()) for room in folders | set(known)}


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--check", action="store_true", help="say whether the picture is up to date; write nothing")
    picture = drawn(rooms(ROOT / "src"))
    if words.parse_args().check:
        return 0 if PICTURE.exists() and PICTURE.read_text() == picture else 1
    PICTURE.write_text(picture)
    print(PICTURE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
