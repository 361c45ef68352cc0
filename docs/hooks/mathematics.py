"""Equations as MathML, made when the site is built: browsers show it without a script, so the site needs no network."""

from __future__ import annotations

import html
import re
from typing import Any

# What pymdownx.arithmatex leaves of $…$ and $$…$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Every formula of a page, inline or in a line of its own."""
    return FORMULA.sub(_formula, content)


def _formula(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    block = match[1] == "div"
    mathml = convert(html.unescape(match[2]).strip(), display="block" if block else "inline")
    return f'<div class="formula">{mathml}</div>' if block else mathml
