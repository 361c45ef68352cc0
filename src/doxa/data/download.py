"""The one place that reaches the network: a published file, verified, put in place whole or not at all."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path

from doxa.data.card import File
from doxa.data.part import Part
from doxa.data.transport import CutShort, Deadline, NotSent, opened, read
from doxa.errors import BrokenFile, Interrupted, require_positive
from doxa.storage.lock import folder_lock
from doxa.version import VERSION

BLOCK = 1 << 16
CONNECTIONS = 5  # that may break without bringing ADVANCE bytes more; of others, as many as the deadline allows
ADVANCE = 1 << 16
PAUSE = 0.5  # seconds before the next connection after one of these, and twice as long each time
TIMEOUT, DEADLINE = 30.0, 1800.0  # seconds
RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
Progress = Callable[[File, int], None]


def download(
    file: File,
    target: Path,
    progress: Progress | None = None,
    timeout: float = TIMEOUT,
    deadline: float = DEADLINE,
    *,
    allow_loopback_http: bool = False,
) -> Path:
    """Fetch a file to `target`, by way of `target`.part beside it, from which a later call goes on.

    Nothing is taken on the server's word: no more bytes than the file has are read, its SHA-256 decides whether it is
    put in place, and every address on the way is https.

    progress: called with the file and the bytes so far;  timeout: the seconds to wait for an answer or the next bytes;
    deadline: the seconds for the whole file;  allow_loopback_http: for tests, http from this machine alone
    """
    require_positive("timeout", timeout)
    require_positive("deadline", deadline)
    with folder_lock(target.parent), Part(target, file.url) as part:
        try:
            with Deadline(deadline) as end:
                _complete(_Transfer(file, part, progress, timeout, end, allow_loopback_http))
            part.put_in_place()
        except NotSent as error:
            kept = f", which goes on from the {part.size} bytes in {part.path}" if part.size else ""
            raise BrokenFile(
                f"{file.url} could not be fetched: {error}; try again{kept}, "
                f"or get the file some other way and put it at {target}"
            ) from error
        except KeyboardInterrupt as error:
            kept = f"the {part.size} bytes in {part.path} are kept, and the next call goes on from there"
            raise Interrupted(
                f"interrupted while fetching {target}; {kept if part.size else 'nothing had arrived'}",
                signal=getattr(error, "signal", 2),
            ) from error
    return target


@dataclass(frozen=True)
class _Transfer:
    """One file on its way, over as many connections as it takes."""

    file: File
    part: Part
    progress: Progress | None
    timeout: float
    deadline: Deadline
    allow_loopback_http: bool

    def go_on(self) -> None:
        """Ask for what is missing, and take what comes, up to the last byte or the end of the connection."""
        headers = {"User-Agent": f"doxa/{VERSION}", "Accept-Encoding": "identity"}
        if self.part.size:
            headers["Range"] = f"bytes={self.part.size}-"
            if validator := self.part.validator:
                headers["If-Range"] = validator
        try:
            with opened(self.file.url, headers, self.timeout, self.deadline, self.allow_loopback_http) as response:
                self._begin(response)
                self._receive(response)
        except NotSent as error:
            if error.status == 416 and self.part.size:  # it has no such bytes: not of this version
                self.part.restart()
                raise CutShort(str(error)) from error
            raise

    def _begin(self, response: HTTPResponse) -> None:
        """Make sure that the bytes to come are those that are to be added to the part."""
        if response.status == 206 and self.part.size:
            answered = str(response.headers.get("Content-Range"))
            span = RANGE.fullmatch(answered)
            if span is None or int(span[1]) != self.part.size or span[3] not in ("*", str(self.file.bytes)):
                asked = f"bytes {self.part.size}-{self.file.bytes - 1}/{self.file.bytes}"
                self.part.restart()
                raise CutShort(f"the server sent {answered[:80]!r} of the file, expected {asked}")
            return
        if response.status != 200:
            raise NotSent(f"the server answered {response.status} {response.reason}", response.status)
        if response.length is not None and response.length != self.file.bytes:
            raise NotSent(f"the server announces {response.length} bytes, expected {self.file.bytes}")
        self.part.restart(_validator(response))

    def _receive(self, response: HTTPResponse) -> None:
        while missing := self.file.bytes - self.part.size:
            try:
                block = read(response, min(BLOCK, missing), self.timeout, self.deadline)
            except CutShort as error:
                raise CutShort(f"{error}, after {self.part.size} of {self.file.bytes} bytes") from error
            self.part.append(block)
            if self.progress is not None:
                self.progress(self.file, self.part.size)


def _complete(transfer: _Transfer) -> None:
    """Go on until all bytes are there and right; those of several connections are given a second chance."""
    file, part = transfer.file, transfer.part
    if part.size > file.bytes:
        part.restart()
    trouble: Exception = NotSent("no connection held")
    failures, most = 0, part.size
    while failures < CONNECTIONS:
        is_resumed = part.size > 0
        try:
            if part.size < file.bytes:
                transfer.go_on()
        except CutShort as error:
            trouble = error
            advanced, most = part.size >= most + ADVANCE, max(most, part.size)
            if not advanced:
                failures += 1
                _pause(failures, transfer.deadline)
            continue
        digest = part.digest()
        if digest == file.sha256:
            return
        part.restart()
        failures, most = failures + 1, 0
        trouble = BrokenFile(
            f"{file.url} is not the file it should be: its SHA-256 is {digest}, expected {file.sha256}; "
            "nothing was kept; try again, or get the file from elsewhere"
        )
        if not is_resumed:
            break
    raise trouble


def _pause(failures: int, deadline: Deadline) -> None:
    if failures < CONNECTIONS:
        time.sleep(min(PAUSE * 2 ** (failures - 1), deadline.remaining()))
        deadline.remaining()


def _validator(response: HTTPResponse) -> str | None:
    """By what the server knows this version of the file again; weak tags promise too little."""
    tag = response.headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")
