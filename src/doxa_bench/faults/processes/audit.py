"""Code that is run and processes that are started, as Python's audit events tell."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

PROCESSES = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "subprocess.Popen",
    "pty.spawn",
)
FOREIGN = ("pickle.find_class",)
CODE = ("compile", "exec", "import")
CANARY = "doxa_canary"  # in names that an attacker would have evaluated


def watch_execution(report: Callable[[str], None]) -> None:
    """Report what is executed from now on, in this process, for good."""

    _warm_up()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # Doxa's own imports are code that is run too, and dataclasses compile text: of these the canary is looked for.
        if event in (*PROCESSES, *FOREIGN) or (event in CODE and CANARY in str(arguments)):
            report(f"{event} {str(arguments)[:200]}")

    sys.addaudithook(hook)


def _warm_up() -> None:
    """What Doxa itself starts processes for, once in each process: to know its kernels and its processor."""
    from doxa import kernels

    kernels.fingerprint()
    platform.processor()
