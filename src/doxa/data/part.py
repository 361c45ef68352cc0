"""What has arrived of a file, kept beside its place until it is whole."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from doxa.errors import BrokenFile
from doxa.storage.disk import atomic_write

BLOCK = 1 << 20
NOTE_BYTES = 10_000
VALIDATOR = re.compile(r"[\x20-\x7e]{1,200}")  # fit for a header


class Part:
    """The beginning of a file, in NAME.part; NAME.part.json holds by what the server knows its version again."""

    def __init__(self, target: Path, url: str) -> None:
        self.path, self.target, self.url = target.with_name(f"{target.name}.part"), target, url
        self.size = 0
        self._note = target.with_name(f"{target.name}.part.json")
        self._descriptor = -1

    def __enter__(self) -> Part:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with explain_write_errors(self.target):
            # A bare descriptor: a buffered file that cannot write fails a second time when it is closed.
            self._descriptor = os.open(self.path, flags, 0o666)
            status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._descriptor)
            raise BrokenFile(f"{self.path} is no file that a download could go on with; remove it")
        self.size = status.st_size
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        if not self.size:
            self._remove()

    @property
    def validator(self) -> str | None:
        """What the server called the version that has begun to arrive, by ETag or date; None where it said nothing."""
        try:
            with open(self._note, "rb") as file:
                note = json.loads(file.read(NOTE_BYTES))
            validator = note["validator"] if note["url"] == self.url else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return validator if isinstance(validator, str) and VALIDATOR.fullmatch(validator) else None

    def restart(self, validator: str | None = None) -> None:
        """Throw away what is there, to begin with a version of this name."""
        with explain_write_errors(self.target):
            os.ftruncate(self._descriptor, 0)
            self.size = 0
            self._note.unlink(missing_ok=True)
        if validator is not None and VALIDATOR.fullmatch(validator):
            with atomic_write(self._note) as file:
                json.dump({"url": self.url, "validator": validator}, file)

    def append(self, block: bytes) -> None:
        """Add what has come next."""
        rest = memoryview(block)
        with explain_write_errors(self.target):
            while rest:
                written = os.pwrite(self._descriptor, rest, self.size)
                self.size += written
                rest = rest[written:]

    def digest(self) -> str:
        """The SHA-256 of what is on the disk."""
        with explain_write_errors(self.target), open(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()

    def put_in_place(self) -> None:
        """Give it its name, in one step, once all of it is on the disk."""
        with explain_write_errors(self.target):
            os.fsync(self._descriptor)
            self._note.unlink(missing_ok=True)  # first: who is killed in between leaves nothing that is never looked at
            os.replace(self.path, self.target)

    def _remove(self) -> None:
        for path in (self.path, self._note):
            with suppress(OSError):
                path.unlink()


@contextmanager
def explain_write_errors(target: Path) -> Iterator[None]:
    """Say of an error of the operating system which file could not be written, and what to do."""
    try:
        yield
    except BrokenFile:
        raise
    except OSError as error:
        raise BrokenFile(
            f"{target} cannot be written ({error.strerror}); make room or give permission, "
            "or set DOXA_DATA to another folder"
        ) from error
