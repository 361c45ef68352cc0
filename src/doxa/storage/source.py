"""What may be read at all: files, and pipes that were handed over; nothing that never ends or never begins."""

from __future__ import annotations

import os
import re
import stat
from os import PathLike

from doxa.errors import BadInput

HANDED_OVER = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/\d+")  # whoever started the process holds the other end
MOST_LINKS = 40  # from one to the next, as the kernel follows
KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def require_readable(path: str | PathLike[str], expected: str) -> None:
    """Refuse a path that is no file; a pipe or a terminal may be read as /dev/stdin or /dev/fd/N."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in it, or half a character
        raise BadInput(f"{str(path)!r} is no name of a file: {error}") from None
    if stat.S_ISDIR(mode):
        raise BadInput(f"{path} is a folder; expected {expected}")
    if not stat.S_ISREG(mode) and not (_is_handed_over(path) and _ends(path, mode)):
        kind = KINDS.get(stat.S_IFMT(mode), "no file")
        raise BadInput(f"{path} is {kind}; expected {expected}, or /dev/stdin to read from a pipe")


def _is_handed_over(path: str | PathLike[str]) -> bool:
    """Whether a path is, or leads by links to, what the process was started with."""
    name, own = os.fspath(path), f"/proc/{os.getpid()}/"
    for _ in range(MOST_LINKS):
        if HANDED_OVER.fullmatch(name):
            return True
        folder, last = os.path.split(name)
        name = os.path.join(os.path.realpath(folder), last).replace(own, "/proc/self/", 1)
        if HANDED_OVER.fullmatch(name):
            return True
        try:
            name = os.path.join(os.path.dirname(name), os.readlink(name))
        except OSError:
            return False
    return False


def _ends(path: str | PathLike[str], mode: int) -> bool:
    """Whether somebody decides when it is over, who writes to a pipe or types on a terminal."""
    if not stat.S_ISCHR(mode):
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)


def read_bytes(path: str | PathLike[str], limit: int, expected: str) -> bytes:
    """All of a file, if it is one and holds no more bytes than the limit."""
    require_readable(path, expected)
    try:
        with open(path, "rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
    if len(content) > limit:
        raise BadInput(f"{path} holds more than {limit:,} bytes, too many for {expected}")
    return content
