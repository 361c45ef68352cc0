"""The command line. Torch is imported by the commands that need it, not by `doxa --help`."""

from __future__ import annotations

import sys
import time

import typer

app = typer.Typer(
    help="Weight uncertainty for PyTorch: any torch network, its weights as beliefs.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def doxa() -> None:
    """Weight uncertainty for PyTorch: any torch network, its weights as beliefs."""


@app.command()
def demo(seed: int = 0) -> None:
    """Train a plain net, a dropout net and a belief on scikit-learn's digits, and judge them side by side."""
    from rich.console import Console
    from rich.table import Table

    from doxa.demo import COLUMNS, TITLES, run

    console = Console()
    start = time.perf_counter()
    found = run(lambda words: console.print(words, highlight=False), seed)
    table = Table(title="What each is worth on digits it has not seen (lower is better, but for AUROC)")
    table.add_column("")
    for title in TITLES:
        table.add_column(title, justify="right")
    for name, row in found.items():
        table.add_row(
            name,
            *[f"{row[c]:.2f}" if c in ("error", "ece", "pruned", "attacked") else f"{row[c]:.4f}" for c in COLUMNS],
        )
    console.print(table)
    console.print(
        f"{time.perf_counter() - start:.0f} s. OOD: the same digits in negative. FGSM: radius 0.1.", highlight=False
    )


@app.command()
def version() -> None:
    """Print the version."""
    from doxa.version import VERSION

    print(VERSION)


def main() -> None:
    """Run the command line; Doxa's own errors are one line and an exit code of 1."""
    try:
        app()
    except Exception as error:
        from doxa.errors import DoxaError

        if not isinstance(error, DoxaError):
            raise
        print(f"doxa: {error}", file=sys.stderr)
        sys.exit(1)
