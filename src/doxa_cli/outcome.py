"""How a command ends when it does not end well: one line, and the exit code that goes with it."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from typing import Any

import typer

from doxa_cli.streams import open_closed_streams, silence
from doxa_cli.terminal import note, printable

REFUSED, USAGE, FAULT, PIPE = 1, 2, 70, 141
BY_SIGNAL, INTERRUPT = 128, 2  # what a signal's number is added to; that of Ctrl-C
ENDED_BY = {129: "SIGHUP", 143: "SIGTERM"}
# As torch says it, which has no error of its own for it on a CPU.
NO_MEMORY = re.compile("can't allocate memory|not enough memory|out of memory|Storage size calculation overflowed")
NO_FLOAT = re.compile(r"cannot be converted to type [\w:]+ without overflow")
TRACEBACK = "DOXA_TRACEBACK"
HEAD, TAIL = 700, 300  # characters kept of a message that is too long; its end says how to mend it

# Typer's versions differ in whose click they use; this is its usage error in all of them.
UsageError = typer.BadParameter.__bases__[0]


def prepare() -> None:
    """Closed streams, letters that the terminal lacks and warnings must not end a command, or fill the screen."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    warnings.showwarning = _warn


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    note(f"note: {message}")


def report_error(error: BaseException) -> int:
    """Say what went wrong, in one line on stderr, and give the exit code."""
    code = _report(error)
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as unwritten:
        silence(sys.stdout)
        return code or _report(unwritten)
    return code


def _report(error: BaseException) -> int:
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        if error.code in ENDED_BY:
            _print_error(f"ended by {ENDED_BY[error.code]}")
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, BrokenPipeError):
        silence(sys.stdout)
        return PIPE
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    message, code = _message_and_code(error)
    _print_error(message)
    return code


def _message_and_code(error: BaseException) -> tuple[str, int]:
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "interrupted", BY_SIGNAL + getattr(error, "signal", INTERRUPT)
    if isinstance(error, UsageError):
        return _usage_message(error), USAGE
    errors = sys.modules.get("doxa.errors")
    if errors is not None and isinstance(error, errors.DoxaError):
        return str(error), REFUSED
    if isinstance(error, OSError):
        return ": ".join(str(part) for part in (error.filename, error.strerror) if part) or str(error), REFUSED
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and NO_MEMORY.search(str(error))):
        return "there is not enough memory; try fewer rows, draws or weights", REFUSED
    if isinstance(error, RuntimeError) and NO_FLOAT.search(str(error)):
        return "a number among the settings is too large for the precision of the weights; give a smaller one", REFUSED
    description = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    advice = f"this is a fault of Doxa, not of yours: run it again with {TRACEBACK}=1 set, and report what it prints"
    return f"unexpected {description}; {advice}", FAULT


def _usage_message(error: Any) -> str:
    message = error.format_message().strip().removesuffix(".")
    message = message[:1].lower() + message[1:]
    if getattr(error, "possibilities", None):
        message = f"no such option: {error.option_name}; did you mean {' or '.join(sorted(error.possibilities))}?"
    if error.ctx is None:
        return message
    see = " See" if message.endswith("?") else "; see"
    return f"{message.replace('. Did you mean', '; did you mean')}{see} {error.ctx.command_path} --help"


def _print_error(message: str) -> None:
    line = printable(message)
    if len(line) > HEAD + TAIL:
        line = f"{line[:HEAD]} … {line[-TAIL:]}"
    note(f"doxa: {line}")
