"""Command lines in one process: every command with options that it has and has not, and values of all kinds."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from doxa_bench.faults.attempts import ExitAsFault, TooSlow, try_each
from doxa_bench.faults.kinds.inputs.block import RUN, Block
from doxa_bench.faults.kinds.inputs.made_up import printable, word

LINES = Block(
    "command lines with options of all commands and values of all kinds", 2.5, "command_lines", "command lines", 100
)
# What is read may be anything that can be named; what is written stays in the folder, which is the process's own.
READ = [
    "table.csv",
    "run",
    "run/result.json",
    "run/run.json",
    "run/belief.doxa",
    "empty",
    "nowhere",
    ".",
    "..",
    "",
    "fifo",
]
READ += [
    "/dev/null",
    "/dev/zero",
    "/proc/self/mem",
    "-",
    "a" * 300,
    "a/" * 3000,
    "\x00",
    "\udcff",
    "~",
    "*",
    "table.csv/x",
]
WRITTEN = [
    "out",
    "run",
    "table.csv",
    "empty",
    "empty/x/y",
    ".",
    "..",
    "",
    "a" * 300,
    "\x00",
    "\udcff",
    "out.csv",
    "-x",
    "fifo",
]
READERS = ("source", "run", "runs", "table", "config")  # arguments and options of these names read
# Those that would take minutes are only asked for with a word that they must refuse.
LONG = ("demo", "replicate", "bench", "search", "get", "attack")
UNKNOWN = "--doxa-canary"
PATHS, FIGURES = ("FILE", "FOLDER", "PATH"), ("N", "SHARE", "NUMBER", "NUMBERS", "RATE", "RADIUS", "SECONDS")
WITHOUT = ("device", "workers", "help", "version", "install_completion", "show_completion")
SHORT_FIT = dict(zip(RUN[::2], RUN[1::2], strict=True))


class Traceback(Exception):
    """A command showed one."""


def attempt_all(folder: str, seed: str, number: int) -> dict[str, Any]:
    os.chdir(folder)

    def attempts() -> Iterator[tuple[str, Callable[[], Any]]]:
        for k in range(number):
            line = make_up_line(random.Random(f"{seed} {k}"))
            yield f"line {k}, doxa {' '.join(printable(each, 30) for each in line)}", partial(run_line, line)

    return try_each(attempts())


def run_line(line: list[str]) -> str:
    """A command line in this process; what its exit code is called."""
    main = importlib.import_module("doxa_cli.app").main
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        code = main(line)
    words = screen.getvalue()
    if TooSlow.__name__ in words:  # the console tells of whatever ends it
        raise TooSlow
    if code == 70:
        raise ExitAsFault(words[-300:])
    if "Traceback (most recent call last)" in words:
        raise Traceback(words[-300:])
    return {0: "answered", 1: "refused", 2: "refused as usage"}.get(code, f"exit {code}")


@functools.cache
def commands() -> dict[str, Any]:
    """Every command by its words, as click knows it."""
    import typer

    root: Any = typer.main.get_command(importlib.import_module("doxa_cli.app").app)
    found: dict[str, Any] = {}
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        found |= {f"{name} {word}": each for word, each in inner.items()} if inner else {name: command}
    return found


def make_up_line(rng: random.Random) -> list[str]:
    """A command with some of its options, most of them with values that make no sense."""
    if rng.random() < 0.05:
        return [word(rng) for _ in range(rng.randrange(1, 5))]
    known = commands()
    name = rng.choice([*known, *[each for each in known if not {*each.split()} & {*LONG}] * 3])
    command = known[name]
    line: list[str] = name.split()
    parameters = [each for each in command.params if each.name not in WITHOUT]
    arguments = [each for each in parameters if not each.opts[0].startswith("-")]
    options = [each for each in parameters if each.opts[0].startswith("-")]
    line += [make_up_value(rng, argument) for argument in arguments if rng.random() < 0.9]
    chosen = rng.sample(options, min(len(options), rng.choice((0, 1, 1, 2, 3, 6))))
    for option in chosen:
        line.append(rng.choice(option.opts))
        if not option.is_flag and rng.random() < 0.95:
            line.append(make_up_value(rng, option))
    if name == "fit":
        given = {each for option in chosen for each in option.opts}
        line += [each for pair in SHORT_FIT.items() if pair[0] not in given for each in pair]
    if line[-1:] != ["--help"] and set(line) & {*LONG}:
        line.insert(len(name.split()), UNKNOWN)  # elsewhere it may be taken for the value of an option
    return line


def make_up_value(rng: random.Random, parameter: Any) -> str:
    """A value for an option or argument: sometimes one that fits."""
    shown = str(parameter.metavar)
    if shown in PATHS or parameter.name in (*READERS, "out"):
        return rng.choice(READ if parameter.name in READERS else WRITTEN)
    if shown in FIGURES:
        return rng.choice(("1", "2", "0.5")) if rng.random() < 0.3 else word(rng)
    return (
        rng.choice(("y", "a", "point", "gaussian:1", "mlp:2", "x=1", "epochs=1")) if rng.random() < 0.3 else word(rng)
    )
