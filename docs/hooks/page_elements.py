"""What a replication shows, as a page has it: charts as SVG, tables in Markdown, images as they are."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from cells import MARKUP, table, text

from doxa.report.numbers import SPACE
from doxa.report.pixels import png_data_url
from doxa_replicate.charts import panel
from doxa_replicate.show import Chart, ImageGrid, PageElement, ResultTable

MINUS = re.compile(r"(?<![\w.–-])-(?=\d)")


def render_elements(parts: Sequence[PageElement], key: str) -> str:
    """Charts that follow each other stand side by side where the page is wide enough; `key` is the page's own."""
    pieces: list[str] = []
    for kind, same_kind in groupby(parts, type):
        if kind is Chart:
            pieces.append(_charts(list(same_kind), f"{key}-{len(pieces)}"))
        else:
            pieces += [_table(part) if isinstance(part, ResultTable) else _images(part) for part in same_kind]
    return "\n\n".join(pieces)


def _charts(charts: Sequence[Chart], key: str) -> str:
    drawn = [_chart(chart, f"{key}-{k}", len(charts) > 1) for k, chart in enumerate(charts)]
    return f'<div class="charts{" beside" if len(charts) > 1 else ""}">{"".join(drawn)}</div>'


def _chart(chart: Chart, key: str, slim: bool) -> str:
    drawn_panel = panel(chart, key, slim)
    names = "".join(f"<li>{mark}<span>{html.escape(name)}</span></li>" for mark, name, _ in drawn_panel.legend)
    return (
        f'<figure class="chart"><p class="name">{html.escape(drawn_panel.title)}</p>'
        f'<div data-search-exclude="">{drawn_panel.svg}</div>'  # its numbers are no words to search for
        f'<ul class="legend">{names}</ul><figcaption>{html.escape(drawn_panel.caption)}</figcaption></figure>'
    )


def _table(part: ResultTable) -> str:
    rows = [[_cell(cell) for cell in row] for row in part.rows]
    grid = table([_cell(head) for head in part.headers], rows, part.text_columns)
    return f'<div class="results" markdown="1">\n\n**{text(part.title)}**\n\n{grid}\n\n{text(part.caption)}\n\n</div>'


def _cell(cell: Any) -> str:
    """A cell in which ** alone is markup, a minus is no hyphen, and no line breaks before an error."""
    unbroken = MINUS.sub("−", str(cell)).replace(" ± ", f"{SPACE}±{SPACE}")
    return "**".join(piece.translate(MARKUP) for piece in unbroken.split("**"))


def _images(part: ImageGrid) -> str:
    headers = "".join(f"<th>{html.escape(head)}</th>" for head in part.headers)
    rows = "".join(
        f"<tr>{''.join(_image(*each) for each in zip(row, part.headers, strict=True))}</tr>" for row in part.rows
    )
    return (
        f'<figure class="images"><p class="name">{html.escape(part.title)}</p><div class="scroll">'
        f'<table class="images"><thead><tr>{headers}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"<figcaption>{html.escape(part.caption)}</figcaption></figure>"
    )


def _image(pixels: Sequence[Sequence[float]], name: str) -> str:
    return f'<td><img src="{png_data_url(pixels)}" alt="{html.escape(name)}"></td>'
