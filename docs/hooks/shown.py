"""What a replication shows, as a page has it: charts as SVG, tables in Markdown, images as they are."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from cells import MARKUP, table, text

from doxa.report.numbers import SPACE
from doxa.report.pixels import data_address
from doxa_replicate.charts import panel
from doxa_replicate.show import Chart, Images, Shown, Table

MINUS = re.compile(r"(?<![\w.–-])-(?=\d)")


def shown(parts: Sequence[Shown], key: str) -> str:
    """Charts that follow each other stand side by side where the page is wide enough; `key` is the page's own."""
    pieces: list[str] = []
    for kind, some in groupby(parts, type):
        if kind is Chart:
            pieces.append(_charts(list(some), f"{key}-{len(pieces)}"))
        else:
            pieces += [_table(part) if isinstance(part, Table) else _images(part) for part in some]
    return "\n\n".join(pieces)


def _charts(charts: Sequence[Chart], key: str) -> str:
    drawn = [_chart(chart, f"{key}-{k}", len(charts) > 1) for k, chart in enumerate(charts)]
    return f'<div class="charts{" beside" if len(charts) > 1 else ""}">{"".join(drawn)}</div>'


def _chart(chart: Chart, key: str, slim: bool) -> str:
    found = panel(chart, key, slim)
    names = "".join(f"<li>{mark}<span>{html.escape(name)}</span></li>" for mark, name, _ in found.legend)
    return (
        f'<figure class="chart"><p class="name">{html.escape(found.title)}</p>'
        f'<div data-search-exclude="">{found.svg}</div>'  # its numbers are no words to search for
        f'<ul class="legend">{names}</ul><figcaption>{html.escape(found.says)}</figcaption></figure>'
    )


def _table(part: Table) -> str:
    rows = [[_cell(cell) for cell in row] for row in part.rows]
    grid = table([_cell(head) for head in part.heads], rows, part.words)
    return f'<div class="results" markdown="1">\n\n**{text(part.title)}**\n\n{grid}\n\n{text(part.says)}\n\n</div>'


def _cell(cell: Any) -> str:
    """A cell in which ** alone is markup, a minus is no hyphen, and no line breaks before an error."""
    unbroken = MINUS.sub("−", str(cell)).replace(" ± ", f"{SPACE}±{SPACE}")
    return "**".join(piece.translate(MARKUP) for piece in unbroken.split("**"))


def _images(part: Images) -> str:
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in part.heads)
    rows = "".join(
        f"<tr>{''.join(_image(*each) for each in zip(row, part.heads, strict=True))}</tr>" for row in part.rows
    )
    return (
        f'<figure class="images"><p class="name">{html.escape(part.title)}</p><div class="scroll">'
        f'<table class="images"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"<figcaption>{html.escape(part.says)}</figcaption></figure>"
    )


def _image(pixels: Sequence[Sequence[float]], name: str) -> str:
    return f'<td><img src="{data_address(pixels)}" alt="{html.escape(name)}"></td>'
