"""How options are declared, and those that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer


def completion(names: Sequence[str]) -> Callable[[str], list[str]]:
    """How a word may go on, for the shell."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def option(
    metavar: str,
    help_text: str,
    *flags: str,
    default: str | bool = False,
    panel: str | None = None,
    choices: Sequence[str] = (),
    minimum: float | None = None,
) -> Any:
    """An option with a value; `default` shows the one in the signature, or says what happens without."""
    return typer.Option(
        *flags,
        metavar=metavar,
        help=help_text,
        show_default=default,
        rich_help_panel=panel,
        autocompletion=completion(choices) if choices else None,
        min=minimum,
    )


def flag(name: str, help_text: str, *other_flags: str, panel: str | None = None) -> Any:
    """An option without a value."""
    return typer.Option(name, *other_flags, metavar="", help=help_text, rich_help_panel=panel, show_default=False)


def argument(metavar: str, help_text: str, choices: Sequence[str] = ()) -> Any:
    """A word in its place."""
    complete = completion(choices) if choices else None
    return typer.Argument(metavar=metavar, help=help_text, show_default=False, autocompletion=complete)


Json = Annotated[bool, flag("--json", "Print the result as JSON on standard output, and nothing else there.")]
Quiet = Annotated[bool, flag("--quiet", "Print no notes and no progress; errors are still printed.", "-q")]
Force = Annotated[bool, flag("--force", "Overwrite the output file if it exists; without it that is an error.")]
Run = Annotated[Path, argument("RUN", "Use the run in this folder, which doxa fit wrote.")]
Encoding = Annotated[str, option("NAME", "Read a CSV file in this encoding, as in latin-1 or utf-16.", default=True)]
Samples = Annotated[int, option("N", "Use this many draws of the weights.", default=True, minimum=1)]
Device = Annotated[
    str | None, option("DEVICE", "Compute on this device, as in cpu, cuda or cuda:1.", "--device", default="cpu")
]
