"""Every command in one program. Each imports torch when it runs, not when its help is asked for."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer

from doxa_cli import data, outcome, runs
from doxa_cli.attack import attack
from doxa_cli.bench import bench
from doxa_cli.demo import demo
from doxa_cli.fit import fit
from doxa_cli.interrupts import raise_on_signals
from doxa_cli.judge import judge
from doxa_cli.plain_flags import PlainFlagsGroup
from doxa_cli.predict import predict
from doxa_cli.prune import prune
from doxa_cli.replicate import replicate
from doxa_cli.report import report
from doxa_cli.search import search
from doxa_cli.unique_options import UniqueOptionsCommand
from doxa_cli.version import print_version, version

COMPLETION = "_DOXA_COMPLETE"  # set by the shell when it asks how a line may go on
NARROW = 72  # columns of a terminal, below which boxes would leave no room for words

app = typer.Typer(cls=PlainFlagsGroup, add_completion=True, pretty_exceptions_enable=False)


@app.callback(
    epilog="The exit code is 0 for success, 1 for input that cannot be used, 2 for wrong usage, 70 for a fault of "
    "Doxa, and 128 and a signal's number for what it stopped: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."
)
def doxa(
    _: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Learn a belief, which is a PyTorch net with uncertain weights, from data; predict with it and judge it.

    Example: doxa demo

    Example: doxa fit houses.csv --target price
    """


for command in (demo, fit, search, predict, judge, report, attack, prune, bench, replicate, version):
    app.command(cls=UniqueOptionsCommand)(command)
app.add_typer(data.app, name="data")
app.add_typer(runs.app, name="runs")


@functools.cache
def _program(markup: Literal["rich"] | None) -> Any:
    """The commands as typer makes them of functions, once for all command lines of a process."""
    app.rich_markup_mode = markup
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; whatever goes wrong is one line on stderr and an exit code."""
    outcome.prepare()
    width = shutil.get_terminal_size().columns
    command = _program("rich" if width >= NARROW else None)
    command_line = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        if COMPLETION in os.environ:
            command.main(command_line, prog_name="doxa")
        # Not command.main: it would turn an interruption into an exit code without a word.
        terminal_width = width if width < NARROW else None
        with (
            raise_on_signals(),
            command.make_context("doxa", command_line, terminal_width=terminal_width) as context,
        ):
            command.invoke(context)
        sys.stdout.flush()
    except BaseException as error:
        return outcome.report_error(error)
    return 0
