"""Matplotlib drawings as pieces of a page: SVG in the page's own colours and type, the same bytes every time."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from doxa.report.palette import FAINT, INK, MUTED, VARIABLES

WIDTH, HEIGHT = 400, 280  # points; the page scales them
SLIM = 300  # for panels that stand side by side
LEFT, RIGHT, TOP, BOTTOM = 42, 12, 26, 38
RC_PARAMS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "doxa",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 10.5,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "lines.scale_dashes": False,
    "lines.dash_capstyle": "butt",
    "path.simplify": False,
}
SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"


def draw_svg(
    draw: Callable[[Axes], None], *, key: str, label: str, x: str, y: str, width: float = WIDTH, height: float = HEIGHT
) -> Markup:
    """What `draw` puts on a pair of axes, as SVG for a page; `key` is unique there, `label` says it in words."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC_PARAMS)
        figure = Figure(figsize=(width / 72, height / 72))
        axes = figure.add_axes(
            (LEFT / width, BOTTOM / height, (width - LEFT - RIGHT) / width, (height - TOP - BOTTOM) / height)
        )
        for axis, ticks in ((axes.xaxis, 6), (axes.yaxis, 5)):
            axis.set_major_locator(MaxNLocator(ticks))
            axis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))
        draw(axes)
        axes.set_xlabel(x, loc="right", labelpad=5)
        # Above the axis and level: a title turned on its side is read with the head on its side.
        figure.text(2 / width, 1 - 4 / height, y, ha="left", va="top", fontsize=10.5)
        svg_file = io.BytesIO()
        figure.savefig(svg_file, format="svg", transparent=True, metadata={"Date": None})
    return _clean_svg(ElementTree.fromstring(svg_file.getvalue()), key, label, "slim" if width < WIDTH else "broad")


def format_tick(value: float) -> str:
    """A number short enough for an axis."""
    if abs(value) >= 1e10:
        return f"{value:g}".replace("-", "−")
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e6 if letter == 'M' else 1e3):g}{letter}".replace("-", "−")
    return f"{0.0 if abs(value) < 1e-12 else value:.6g}".replace("-", "−")


def _clean_svg(root: ElementTree.Element, key: str, label: str, kind: str) -> Markup:
    """SVG that a page may hold: no size, style sheet, metadata or foreign namespace, and ids that are its own."""
    _remove_unused(root)
    referenced_ids = set(re.findall(r"#([\w.-]+)[)\"]", ElementTree.tostring(root, "unicode")))
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        element.text = element.text if element.tag == "text" else None
        element.tail = None
        element.attrib = dict(_clean_attributes(element.attrib, key, referenced_ids))
    root.attrib = {"class": f"plot {kind}", "viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    return Markup(ElementTree.tostring(root, "unicode"))  # ElementTree has escaped every text


def _remove_unused(element: ElementTree.Element) -> None:
    for child in list(element):
        _remove_unused(child)
        empty = child.tag in (f"{SVG}g", f"{SVG}defs") and not len(child)
        if child.tag in (f"{SVG}metadata", f"{SVG}style") or empty:
            element.remove(child)


def _clean_attributes(attributes: dict[str, str], key: str, referenced_ids: set[str]) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if name == "id":
            if value in referenced_ids:
                yield name, f"{key}-{value}"
        elif name == f"{XLINK}href":
            yield "href", f"#{key}-{value[1:]}"
        elif name == "clip-path":
            yield name, value.replace("url(#", f"url(#{key}-")
        elif name == "style":
            yield name, _clean_style(value)
        elif name == "transform":
            if not value.startswith("rotate(-0 "):
                yield name, value
        else:
            yield name, _round_numbers(value) if name in ("d", "x", "y", "width", "height") else value


def _clean_style(style: str) -> str:
    """The page's variables for their stand-ins; its type for matplotlib's."""
    rules = [rule for rule in style.split("; ") if not rule.startswith("font-family:")]
    return re.sub(r"#0000[ef]\d", lambda match: f"var({VARIABLES[match[0]]})", "; ".join(rules))


def _round_numbers(numbers: str) -> str:
    return " ".join(
        re.sub(r"-?\d+\.\d+", lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), numbers).split()
    )
