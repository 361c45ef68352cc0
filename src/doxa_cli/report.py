"""`doxa report`: any number of runs on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from doxa_cli.options import Force, Json, Quiet, argument, option
from doxa_cli.terminal import print_json, print_line, print_table
from doxa_cli.writing import require_free

GENERATOR = b'<meta name="generator" content="doxa report">'  # a page that may be written anew


def report(
    runs: Annotated[
        list[Path],
        argument(
            "RUN…", "Compare these runs, or results that doxa judge --out wrote; those on the same rows share a table."
        ),
    ],
    out: Annotated[Path, option("FILE", "Write the page to this HTML file.", default=True)] = Path("report.html"),
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare runs on one self-contained HTML page: scores, calibration, pruning, findings and settings.

    Example: doxa report runs/houses houses.json --out report.html
    """
    require_free(out, force, GENERATOR)
    from doxa import report as pages

    results = [_result(path) for path in runs]
    pages.write(results, out)
    if as_json:
        shown_keys = ("name", "data", "settings", "scores", "findings")
        print_json({"page": str(out), "results": [{k: r[k] for k in shown_keys if k in r} for r in results]})
        return
    if not quiet:
        _compare(results)
    print_line(out)


def _result(path: Path) -> dict[str, Any]:
    """The result in a file, or of a finished run under the name that its folder has now."""
    from doxa.results import read_result
    from doxa.runs import read_run_result
    from doxa.storage.source import require_readable

    if path.exists() and not path.is_dir():
        require_readable(path, "the folder of a run, or a file that doxa judge --out wrote")
        return read_result(path)
    return {**read_run_result(path), "name": path.resolve().name}


def _compare(results: list[dict[str, Any]]) -> None:
    from doxa.report.runs import group_runs
    from doxa.report.table import main_table

    for group in group_runs(results):
        group_table = main_table(group.runs)
        marks = {"best": " ★", "close": " ≈", "": "  "}
        rows = [[run.name, *(cell.text + marks[cell.mark] for cell in cells)] for run, cells in group_table.rows]
        print_table(group.title, ["run", *(column.heading for column in group_table.columns)], rows)
        print_line()
