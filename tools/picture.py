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
ASIDE = {"__init__", "errors", "moved", "registry", "version"}  # known by everybody, or knowing everybody

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


def reduce_transitively(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """The transitive reduction of an acyclic graph: only the arrows that no longer path stands for."""

    @cache
    def reachable(room: str) -> frozenset[str]:
        return frozenset().union(*({below} | reachable(below) for below in imports[room]))

    return {
        room: {one for one in below if not any(one in reachable(other) for other in below if other != one)}
        for room, below in imports.items()
    }


@dataclass(frozen=True)
class Graph:
    """Rooms by storey, roof first, and every line as the stations that it passes, one a storey.

    A room stands right below the lowest one that knows it. Between rooms that are storeys apart a line takes a place of
    its own in each storey, so that it leads round the rooms there and not behind them.
    """

    rows: list[list[str]]
    lines: list[list[str]]
    neighbours: dict[str, list[str]]

    @staticmethod
    def of(imports: dict[str, set[str]]) -> Graph:
        @cache
        def depth(room: str) -> int:
            return 1 + max((depth(above) for above, below in imports.items() if room in below), default=-1)

        rows: list[list[str]] = [[] for _ in range(1 + max(map(depth, imports)))]
        for room in sorted(imports):
            rows[depth(room)].append(room)
        lines = []
        for room, below in sorted(reduce_transitively(imports).items()):
            for other in sorted(below):
                stations = {storey: f"{room}>{other}>{storey}" for storey in range(depth(room) + 1, depth(other))}
                for storey, station in stations.items():
                    rows[storey].append(station)
                lines.append([room, *stations.values(), other])
        neighbours: dict[str, list[str]] = {}
        for line in lines:
            for upper, lower in pairwise(line):
                neighbours.setdefault(upper, []).append(lower)
                neighbours.setdefault(lower, []).append(upper)
        return Graph(rows, lines, neighbours)

    def positions(self) -> dict[str, float]:
        """The middle of every station: near what it is joined to. Sugiyama, Tagawa & Toda (1981)."""
        x_of = {room: WIDTH * (i + 1) / (len(row) + 1) for row in self.rows for i, room in enumerate(row)}

        def target_x(room: str) -> float:
            return mean([x_of[room], *(x_of[other] for other in self.neighbours.get(room, []))])

        for _ in range(30):  # first the order, in even steps
            for row in self.rows:
                row.sort(key=target_x)
                x_of |= {room: WIDTH * (i + 1) / (len(row) + 1) for i, room in enumerate(row)}
        for _ in range(60):  # then the places, with the order as it is
            for row in self.rows:
                x_of |= _spread(row, [target_x(room) for room in row])
        leftmost = min(x_of[room] - width(room) / 2 for room in x_of)
        return {room: x - leftmost + PAD for room, x in x_of.items()}


def width(room: str) -> float:
    return 2.0 if ">" in room else len(room) * LETTER + 2 * PAD


def _spread(row: list[str], targets: list[float]) -> dict[str, float]:
    """Places near their targets, in the same order, with room between neighbours."""
    least = [(width(a) + width(b)) / 2 + GAP for a, b in pairwise(row)]
    right, left = [*targets], [*targets]
    for i, gap in enumerate(least, 1):
        right[i] = max(right[i], right[i - 1] + gap)
    for i in range(len(row) - 2, -1, -1):
        left[i] = min(left[i], left[i + 1] - least[i])
    return {room: (a + b) / 2 for room, a, b in zip(row, left, right, strict=True)}


def render_svg(imports: dict[str, set[str]]) -> str:
    """The picture as SVG."""
    graph = Graph.of(imports)
    x_of, storey = graph.positions(), {room: number for number, row in enumerate(graph.rows) for room in row}
    boxes = {room: (x_of[room], PAD + storey[room] * ROW) for room in x_of}  # middle, top
    right_edge = max(x + width(room) / 2 for room, x in x_of.items()) + PAD
    height = len(graph.rows) * ROW + PAD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right_edge:.0f} {height}" role="img">',
        "<title>The rooms of Doxa: each stands above all that it imports</title>",
        f"<style>{STYLE}</style>",
        *(_draw_line([boxes[station] for station in line]) for line in graph.lines),
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


def _draw_line(stations: list[tuple[float, float]]) -> str:
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
    imports = {room: set(below) - ASIDE for room, below in arrows(source).items() if room not in ASIDE}
    for room in set().union(*imports.values()) - set(imports):
        imports[room] = set()
    folders = {path.parent.name for path in (source / "doxa").glob("*/__init__.py")}
    return {room: imports.get(room, set()) for room in (folders | set(imports)) - ASIDE}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="say whether the picture is up to date; write nothing")
    picture = render_svg(rooms(ROOT / "src"))
    if parser.parse_args().check:
        return 0 if PICTURE.exists() and PICTURE.read_text() == picture else 1
    PICTURE.write_text(picture)
    print(PICTURE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
