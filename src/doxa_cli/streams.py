"""Standard streams that are closed, or that nothing can be written to any more."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any


def open_closed_streams() -> None:
    """Have what goes to a closed stream go nowhere, as to /dev/null, and not to the file that is opened next."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free, which is this one; and so for the processes that are started.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            mode = "r" if descriptor == 0 else "w"
            stream = open(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def silence(stream: Any) -> None:
    """What is left in a stream, and what still comes, goes nowhere; at exit too, where it would change the code."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
