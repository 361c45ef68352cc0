"""Faults at the k-th call that writes: the process dies before, after or half-way through it, or the disk is full.

Python's own ways to the disk are replaced: `open` for writing and what is written to such a file, `os.open` for
writing, `os.write`, `os.pwrite`, `os.ftruncate`, `os.fsync`, and whatever names, moves and removes. Only what happens
below one folder counts, so that the k-th call is the same call every time.
"""

from __future__ import annotations

import builtins
import errno
import hashlib
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from doxa.storage.disk import is_temporary

KILL = "kill"
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EACCES": errno.EACCES}
PHASES = ("before", "after", "half")
NAMING = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "link", "symlink", "truncate")
DESCRIPTORS = ("write", "pwrite", "ftruncate", "fsync", "fdatasync")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

original_open, original_write = open, os.write


class Shim:
    """Counts the calls that write below `root`, and lets the one numbered `at`, from 1, go wrong.

    `action` is `kill` or one of `ERRORS`; with `lasting` all later calls fail too, as on a disk that stays full.
    `saved` hears `saving` and `saved`, the name and the SHA-256 of each file that is put in its place.
    """

    def __init__(
        self,
        root: str,
        at: int = 0,
        phase: str = "before",
        action: str = KILL,
        lasting: bool = False,
        saved: Callable[[str, str, str], None] = lambda event, name, digest: None,
    ) -> None:
        self.root, self.at, self.phase, self.action, self.lasting = os.path.realpath(root), at, phase, action, lasting
        self.saved, self.count, self.inside, self.process = saved, 0, False, os.getpid()

    def install(self) -> None:
        """Replace what writes, in this process, for good."""
        for name in NAMING:
            setattr(os, name, self._naming(name, getattr(os, name)))
        for name in DESCRIPTORS:
            setattr(os, name, self._on_descriptor(name, getattr(os, name)))
        os.open = self._os_open(os.open)
        builtins.open = io.open = self._open

    def strike(self, call: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        """Make a call that writes, unless it is the one that goes wrong."""
        if self.inside or os.getpid() != self.process:
            return call()
        self.inside = True
        try:
            self.count += 1
            hit = self.at and (self.count == self.at or (self.lasting and self.count > self.at))
            if not hit:
                return call()
            if self.phase == "after" and self.action == KILL:
                call()
            elif self.phase == "half" and half is not None:
                half()
            if self.action == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            number = ERRORS[self.action]
            raise OSError(number, os.strerror(number))
        finally:
            self.inside = False

    def covers(self, path: Any) -> bool:
        """Whether a path, or what a descriptor is open for, lies below the folder."""
        try:
            name = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.path.abspath(os.fsdecode(path))
        except (OSError, TypeError, ValueError):
            return False
        return name == self.root or name.startswith(self.root + os.sep)

    def _naming(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *more: Any, **options: Any) -> Any:
            if not self.covers(path):
                return original(path, *more, **options)
            if name not in ("replace", "rename"):
                return self.strike(lambda: original(path, *more, **options))
            # Told before and after: who dies in between has saved the one or the other.
            target = more[0] if more else options["dst"]
            self._report("saving", path, target)
            result = self.strike(lambda: original(path, *more, **options))
            self._report("saved", target, target)
            return result

        return call

    def _report(self, event: str, path: Any, target: Any) -> None:
        if not self.inside and os.getpid() == self.process and os.path.isfile(path):
            with original_open(path, "rb") as file:
                self.saved(event, os.path.relpath(target, self.root), hashlib.sha256(file.read()).hexdigest())

    def _on_descriptor(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(descriptor: int, *more: Any) -> Any:
            if not self.covers(descriptor):
                return original(descriptor, *more)
            if name in ("write", "pwrite"):
                data = bytes(more[0])
                half = lambda: original(descriptor, data[: len(data) // 2], *more[1:])  # noqa: E731
                return self.strike(lambda: original(descriptor, *more), half)
            return self.strike(lambda: original(descriptor, *more))

        return call

    def _os_open(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, flags: int, *more: Any, **options: Any) -> Any:
            if not flags & WRITING or not self.covers(path):
                return original(path, flags, *more, **options)
            return self.strike(lambda: original(path, flags, *more, **options))

        return call

    def _open(self, file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
        if not set(mode) & set("wxa+") or not self.covers(file):
            return original_open(file, mode, *more, **options)
        return WatchedFile(self.strike(lambda: original_open(file, mode, *more, **options)), self)


class WatchedFile:
    """A file each write to which is a call that may go wrong."""

    def __init__(self, file: Any, shim: Shim) -> None:
        self._file, self._shim = file, shim

    def write(self, data: Any) -> Any:
        def half() -> None:
            self._file.write(data[: len(data) // 2])
            self._file.flush()

        return self._shim.strike(lambda: self._file.write(data), half)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def truncate(self, *size: Any) -> Any:
        return self._shim.strike(lambda: self._file.truncate(*size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> WatchedFile:
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._file.__exit__(*error)

    def __iter__(self) -> Any:
        return iter(self._file)


def folder_digests(folder: Path) -> set[str]:
    """The SHA-256 of every file below a folder that is in its place."""
    return {
        hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not is_temporary(path.name)
    }
