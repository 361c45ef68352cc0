"""`doxa runs`: whether a run is whole, and a seal for one that has none."""

from __future__ import annotations

from dataclasses import asdict

import typer

from doxa_cli.options import Json, Quiet, Run
from doxa_cli.plain_flags import PlainFlagsCommand, PlainFlagsGroup
from doxa_cli.terminal import note_printer, print_json, print_line

app = typer.Typer(cls=PlainFlagsGroup, invoke_without_command=True)


@app.callback()
def runs(context: typer.Context) -> None:
    """Verify the folders that runs were learned in, and seal those of older versions.

    Example: doxa runs check runs/houses
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(cls=PlainFlagsCommand)
def check(run: Run, as_json: Json = False, quiet: Quiet = False) -> None:
    """Verify every file of a run, and say of each that is damaged, missing, left over or foreign what to do.

    Example: doxa runs check runs/houses

    The exit code is 0 for a run that is whole, sealed or not, and 1 for one that is damaged or was never finished.
    """
    from doxa.runs.check import check_run

    found = check_run(run)
    if as_json:
        files = [asdict(file) for file in found.files]
        print_json({"run": str(run), "state": found.state, "advice": found.advice, "files": files})
    else:
        for file in found.files:
            if not quiet or not file.is_well:
                print_line(f"{file.state:<10}{file.name}{': ' if file.advice else ''}{file.advice}")
        if not quiet or not found.is_whole:
            print_line(f"{run} is {found.state}{': ' if found.advice else ''}{found.advice}")
    if not found.is_whole:
        raise typer.Exit(1)


@app.command(cls=PlainFlagsCommand)
def seal(run: Run, as_json: Json = False, quiet: Quiet = False) -> None:
    """Seal a run that an older version wrote, as it is now, so that any later damage to it is seen.

    Example: doxa runs seal runs/houses
    """
    from doxa.runs.check import seal_run

    was_needed = seal_run(run)
    if as_json:
        print_json({"run": str(run), "state": "sealed", "changed": was_needed})
        return
    if not was_needed:
        note_printer(quiet)(f"{run} is sealed already, and whole")
    if not quiet:
        print_line(f"{run} is sealed")
