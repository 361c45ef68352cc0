"""`doxa demo`: what weight uncertainty is worth, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from doxa_cli.options import Json, Quiet, flag, option
from doxa_cli.terminal import notes, paragraph, put, put_json, table

QUICK = 5  # epochs


def demo(
    out: Annotated[Path, option("FOLDER", "For the results and the page.", default=True)] = Path("doxa-demo"),
    seeds: Annotated[int, option("N", "The standard errors are over so many seeds.", default=True, least=1)] = 3,
    quick: Annotated[bool, flag("--quick", "One seed and a few epochs: a look, not a measurement.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a plain net, a dropout net and a belief on digits and on a curve, judge them and write a report."""
    say = notes(quiet)
    say("digits and a curve, each learned by a plain net and by a belief; about a minute on two cores")
    from doxa.demo import PAGE
    from doxa.demo import run as compare
    from doxa.demo import table as scores

    found = compare(out, say, range(1 if quick else seeds), QUICK if quick else None)
    if as_json:
        put_json({"page": str(out / PAGE), "results": found})
        return
    if not quiet:
        heads, rows = scores(found)
        table("On digits it has not seen, ± standard error over seeds", ["", *heads], rows)
        paragraph("★ best of its row, ≈ within two standard errors of it.", rest="")
    put(out / PAGE)
