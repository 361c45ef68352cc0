"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from doxa.errors import BrokenFile


@contextmanager
def atomic_write(path: Path, mode: str = "w", **open_options: Any) -> Iterator[IO[Any]]:
    """A new file to write to, in the place of `path` once all of it is on the disk; whatever fails, nothing is lost."""
    temporary = path.with_name(f".{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, mode.replace("w", "x"), **open_options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        reassurance = "; the file that was there is untouched" if path.exists() else ""
        raise BrokenFile(f"could not write {path}: {error.strerror or error}{reassurance}") from error
