"""Help is written for strangers: whole sentences, and examples that can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from doxa_cli.app import app

from .small import Command

PROGRAM: Any = typer.main.get_command(app)


def commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and those within it, by what is typed."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(f"{path} {name}", inner)


COMMANDS = dict(commands("doxa", PROGRAM))


def paragraphs(command: Any) -> list[str]:
    return [" ".join(part.split()) for part in command.help.split("\n\n")]


def examples(command: Any) -> list[str]:
    return [part.removeprefix("Example: ") for part in paragraphs(command) if part.startswith("Example: ")]


def is_sentence(text: str) -> bool:
    """Begins with a capital, has several words and a full stop, and one line."""
    return re.fullmatch(r"[A-Z][a-z-]+ .+ .+\.", text) is not None


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_argument_and_option_is_told_in_sentences(path: str) -> None:
    command = COMMANDS[path]
    assert all(is_sentence(part) for part in paragraphs(command) if not part.startswith("Example: "))
    for parameter in command.params:
        assert is_sentence(parameter.help), f"{path}: {parameter.opts}"


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_an_example_that_it_can_parse(path: str) -> None:
    assert examples(COMMANDS[path])
    for example in examples(COMMANDS[path]):
        assert example.startswith(path)
        words = shlex.split(example)
        command, name = PROGRAM, words.pop(0)
        while hasattr(command, "commands"):
            name = words.pop(0)
            command = command.commands[name]
        command.make_context(name, words)


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_flags_take_no_value_and_show_no_type(columns: int, doxa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for path in COMMANDS:
        shown = doxa(*path.split()[1:], "--help").out
        assert "bool" not in shown.lower()
