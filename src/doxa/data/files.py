"""The user's folder of data, and the files in it."""

from __future__ import annotations

import os
from pathlib import Path

from doxa.errors import BadInput, BrokenFile


def folder() -> Path:
    """The folder that the environment variable DOXA_DATA names."""
    named = os.environ.get("DOXA_DATA", "")
    if not named:
        raise BadInput(
            "the environment variable DOXA_DATA is not set; set it to the folder that holds your data sets, "
            "for example: export DOXA_DATA=$HOME/data (MNIST is then looked for in $HOME/data/mnist)"
        )
    path = Path(named).expanduser()
    if not path.is_dir():
        raise BadInput(f"DOXA_DATA names {path.absolute()}, which is no folder; create it or set DOXA_DATA to another")
    return path


def find(*places: str, source: str) -> Path:
    """The first of `places` in DOXA_DATA that holds a file; the error where none does names the `source`."""
    here = folder()
    for place in places:
        if (here / place).is_file():
            return here / place
    wanted, *others = (str((here / place).absolute()) for place in places)
    instead = f" (or {' or '.join(others)})" if others else ""
    raise BadInput(f"the file {wanted}{instead} is missing; put it there, from {source}")


def read(path: Path) -> bytes:
    """All bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BrokenFile(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error
