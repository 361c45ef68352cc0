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
    partial_file = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    with _explain_write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        digest, received = hashlib.sha256(), 0
        with _create_file(partial_file, target) as out:
            for block in _blocks(file, target, timeout):
                with _explain_write_errors(target):
                    _write(out, block)
                digest.update(block)
                received += len(block)
                if progress is not None:
                    progress(file, received)
            with _explain_write_errors(target):
                os.fsync(out)
        _verify_file(file, digest.hexdigest())
        with _explain_write_errors(target):
            partial_file.replace(target)
    finally:
        partial_file.unlink(missing_ok=True)
    return target


def _blocks(file: File, target: Path, timeout: float) -> Iterator[bytes]:
    request = urllib.request.Request(file.url, headers={"User-Agent": f"doxa/{VERSION}"})
    received = 0
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            expected = int(response.headers.get("Content-Length") or file.bytes)
            while block := response.read(BLOCK):
                received += len(block)
                if received > expected:
                    raise http.client.HTTPException(f"the answer goes on after the {expected} bytes expected")
                yield block
        if received < expected:
            raise http.client.HTTPException(f"the answer ended after {received} of {expected} bytes")
    except urllib.error.HTTPError as error:
        raise _download_error(file, target, f"the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _download_error(file, target, _reason(error.reason, timeout)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _download_error(file, target, _reason(error, timeout)) from error


def _reason(error: object, timeout: float) -> str:
    return f"no answer for {timeout:g} s" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


def _download_error(file: File, target: Path, reason: str) -> BrokenFile:
    return BrokenFile(
        f"{file.url} could not be fetched: {reason}; try again, or get the file some other way and put it at {target}"
    )


def _verify_file(file: File, digest: str) -> None:
    if digest != file.sha256:
        raise BrokenFile(
            f"{file.url} is not the file it should be: its SHA-256 is {digest}, expected {file.sha256}; "
            "nothing was kept; try again, or get the file from elsewhere"
        )


@contextlib.contextmanager
def _explain_write_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BrokenFile(
            f"{target} cannot be written ({error.strerror}); make room or give permission, "
            "or set DOXA_DATA to another folder"
        ) from error


@contextlib.contextmanager
def _create_file(partial_file: Path, target: Path) -> Iterator[int]:
    # A bare descriptor: a buffered file that cannot write fails a second time when it is closed.
    with _explain_write_errors(target):
        descriptor = os.open(partial_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(out: int, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(out, rest) :]
