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


Json = Annotated[bool, flag("--json", "Print JSON to stdout, and nothing else there.")]
Quiet = Annotated[bool, flag("--quiet", "No notes and no progress; errors are still told.", "-q")]
Force = Annotated[bool, flag("--force", "Overwrite the file if there is one.")]
Run = Annotated[Path, argument("RUN", "The folder that doxa fit wrote.")]
Encoding = Annotated[str, option("NAME", "Of the table's letters: utf-8, latin-1, utf-16 …", default=True)]
Samples = Annotated[int, option("N", "Draws of the weights.", default=True, minimum=1)]
Device = Annotated[str | None, option("DEVICE", "cpu, cuda, cuda:1 …", "--device")]
