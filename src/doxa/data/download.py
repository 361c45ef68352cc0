"""The one place that reaches the network: a published file, verified, put in place whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from doxa.data.card import File
from doxa.errors import BrokenFile, require_positive
from doxa.version import VERSION

BLOCK = 1 << 16
Progress = Callable[[File, int], None]


def download(file: File, target: Path, progress: Progress | None = None, timeout: float = 30.0) -> Path:
    """Fetch a file to `target`, by way of a partial file beside it that is renamed when it proves right.

    progress: called with the file and the bytes so far;  timeout: the seconds to wait for an answer or the next bytes
    """
    require_positive("timeout", timeout)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    with _writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        digest, done = hashlib.sha256(), 0
        with _opened(part, target) as out:
            for block in _blocks(file, target, timeout):
                with _writing(target):
                    _write(out, block)
                digest.update(block)
                done += len(block)
                if progress is not None:
                    progress(file, done)
            with _writing(target):
                os.fsync(out)
        _verify(file, part, digest.hexdigest())
        with _writing(target):
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _blocks(file: File, target: Path, timeout: float) -> Iterator[bytes]:
    request = urllib.request.Request(file.url, headers={"User-Agent": f"doxa/{VERSION}"})
    done = 0
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            promised = int(answer.headers.get("Content-Length") or file.bytes)
            while block := answer.read(BLOCK):
                done += len(block)
                if done > promised:
                    raise http.client.HTTPException(f"the answer goes on after the {promised} bytes expected")
                yield block
        if done < promised:
            raise http.client.HTTPException(f"the answer ended after {done} of {promised} bytes")
    except urllib.error.HTTPError as error:
        raise _failed(file, target, f"the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _failed(file, target, _reason(error.reason, timeout)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _failed(file, target, _reason(error, timeout)) from error


def _reason(error: object, timeout: float) -> str:
    return f"no answer for {timeout:g} s" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


def _failed(file: File, target: Path, reason: str) -> BrokenFile:
    return BrokenFile(
        f"{file.url} could not be fetched: {reason}; try again, or get the file some other way and put it at {target}"
    )


def _verify(file: File, part: Path, found: str) -> None:
    if file.sha256 is not None and found != file.sha256:
        raise BrokenFile(
            f"{file.url} is not the file it should be: its SHA-256 is {found}, expected {file.sha256}; "
            "nothing was kept; try again, or get the file from elsewhere"
        )
    if file.check is not None:
        try:
            file.check(part)
        except BrokenFile as error:
            raise BrokenFile(f"{file.url} is not the file it should be, and nothing was kept: {error}") from error


@contextlib.contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BrokenFile(
            f"{target} cannot be written ({error.strerror}); make room or give permission, "
            "or set DOXA_DATA to another folder"
        ) from error


@contextlib.contextmanager
def _opened(part: Path, target: Path) -> Iterator[int]:
    # A bare descriptor: a buffered file that cannot write fails a second time when it is closed.
    with _writing(target):
        out = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        yield out
    finally:
        os.close(out)


def _write(out: int, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(out, rest) :]
