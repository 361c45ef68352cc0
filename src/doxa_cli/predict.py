"""`doxa predict`: what a belief says of new rows, and how much to believe it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from doxa_cli.options import Device, Encoding, Force, Json, Quiet, Run, Samples, argument, option
from doxa_cli.terminal import note_printer, print_json, printable, row_count_printer, throttled
from doxa_cli.writing import require_free


def predict(
    run: Run,
    source: Annotated[
        str,
        argument(
            "TABLE",
            "Predict the rows of this CSV or parquet file, which needs the columns that the run was learned from.",
        ),
    ],
    out: Annotated[
        Path | None, option("FILE", "Write the predictions to this CSV file.", default="standard output")
    ] = None,
    samples: Samples = 50,
    level: Annotated[
        float, option("SHARE", "Give intervals that hold this share of the targets, between 0 and 1.", default=True)
    ] = 0.9,
    new: Annotated[
        str,
        option(
            "WHAT",
            "Refuse (error) a category or a gap that training never had, or predict it, marked as unlike (allow).",
            default=True,
            choices=("error", "allow"),
        ),
    ] = "error",
    encoding: Encoding = "utf-8",
    device: Device = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict every row of a table: a mean and an interval, or a label and probabilities, and whether it is unfamiliar.

    Example: doxa predict runs/houses new.csv --out predictions.csv

    With --json each row is printed as a JSON object; with --out too, a summary is, and the rows go to the file as CSV.

    Classes that are formulas to a spreadsheet, such as =A1, are written to CSV with an apostrophe before them.
    """
    say = note_printer(quiet)
    require_free(out, force)
    from doxa.runs import open_run, predict_table, write_csv
    from doxa.tables import read

    saved_run = open_run(run, device)
    rows = read(source, encoding, row_count_printer(say))
    if saved_run.preparation is not None:
        for note in saved_run.preparation.assumption_notes(rows):
            say(note)
    progress = throttled(say)
    predictions = predict_table(
        saved_run, rows, samples=samples, level=level, new=new, say=lambda done: progress(f"predicted {done:,} rows")
    )
    unlike_count = int(predictions["unlike"].sum())
    if out is None:
        _print(predictions, as_json)
    else:
        write_csv(out, predictions)
        if as_json:
            print_json(
                {
                    "run": str(run),
                    "out": str(out),
                    "rows": len(rows),
                    "unlike": unlike_count,
                    "columns": list(predictions),
                }
            )
    destination = f", in {out}" if out is not None else ""
    say(f"{len(rows):,} rows predicted{destination}; {unlike_count:,} of them unlike those it was learned from")


def _print(columns: dict[str, Any], as_json: bool) -> None:
    from doxa.results import to_plain_json
    from doxa.runs import csv_lines

    if as_json:
        names = list(columns)
        for row in zip(*(column.tolist() for column in columns.values()), strict=True):
            print(json.dumps(to_plain_json(dict(zip(names, row, strict=True))), allow_nan=False))
        return
    harmless = printable if sys.stdout.isatty() else None
    for line in csv_lines(columns):
        sys.stdout.write(f"{harmless(line)}\n" if harmless else f"{line}\n")
