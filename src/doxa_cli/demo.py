"""`doxa demo`: what weight uncertainty is worth, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from doxa_cli.options import Json, Quiet, flag, option
from doxa_cli.terminal import note_printer, print_json, print_line, print_paragraph, print_table

QUICK = 5  # epochs


def demo(
    out: Annotated[
        Path, option("FOLDER", "Write the results and the page report.html to this folder.", default=True)
    ] = Path("doxa-demo"),
    seeds: Annotated[
        int, option("N", "Repeat everything with this many seeds, for standard errors.", default=True, minimum=1)
    ] = 3,
    quick: Annotated[
        bool, flag("--quick", "Use one seed and a few epochs, for a look instead of a measurement.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a plain net, a dropout net and a belief on digits and on a curve, judge them and write a report.

    Example: doxa demo --quick

    It takes about a minute on two cores and fetches nothing.
    """
    say = note_printer(quiet)
    say("digits and a curve, each learned by a plain net and by a belief; about a minute on two cores")
    from doxa.demo import PAGE
    from doxa.demo import run as compare
    from doxa.demo import table as scores

    results = compare(out, say, range(1 if quick else seeds), QUICK if quick else None)
    if as_json:
        print_json({"page": str(out / PAGE), "results": results})
        return
    if not quiet:
        headers, rows = scores(results)
        print_table("On digits it has not seen, ± standard error over seeds", ["", *headers], rows)
        print_paragraph("★ best of its row, ≈ within two standard errors of it.", rest="")
    print_line(out / PAGE)
