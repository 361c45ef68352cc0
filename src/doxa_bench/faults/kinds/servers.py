"""Downloads from servers on the loopback that lie about lengths, stand still, never end, or send elsewhere."""

from __future__ import annotations

import hashlib
import random
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from doxa.data.card import File
from doxa.data.download import download
from doxa_bench.faults import attempts
from doxa_bench.faults.attempts import Accepted, TooSlow, note_block, try_each
from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.processes.jobs import Job

CONTENT = bytes(range(256)) * 400
BLOCK = 10  # downloads in a case
TIMEOUT, DEADLINE = 0.2, 0.8  # seconds for an answer, and for the whole file
MOST = 2 * len(CONTENT)  # bytes that may lie in the folder, whatever is sent
SLACK = 5.0  # seconds beyond the deadline, on a machine that does other things too
ENDLESS = 5.0  # seconds beyond those of an attempt after which a server that never ends does
OUTSIDE = "127.0.0.2"  # a machine that is not this one, as far as an address tells
FORBIDDEN = "sends where it must not"


class Servers:
    """A block of downloads, each from a server that answers in a way of its own."""

    asks = "downloads from servers that lie about lengths, stand still, never end, or send elsewhere"
    share = 0.5

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        outcome = Outcome()
        with workshop.folder() as folder:
            arguments = {"folder": str(folder), "seed": f"{case.seed} {case.number}", "number": BLOCK}
            job = Job("doxa_bench.faults.kinds.servers:attempt_all", arguments, timeout=300, memory=1 << 30, audit=True)
            note_block(outcome, workshop.run(job), "downloads")
        return outcome


def attempt_all(folder: str, seed: str, number: int) -> dict[str, Any]:
    def downloads() -> Iterator[tuple[str, Callable[[], Any]]]:
        for k in range(number):
            rng = random.Random(f"{seed} {k}")
            name = rng.choice([*ANSWERS, FORBIDDEN])
            yield f"download {k} from a server that {name}", partial(fetch, Path(folder) / str(k), name, rng)

    return try_each(downloads())


def fetch(folder: Path, name: str, rng: random.Random) -> None:
    """Download from a server, maybe over what an earlier download left; no wrong file is put in place."""
    folder.mkdir()
    right = folder.with_name(f"{folder.name}-right")
    right.write_bytes(CONTENT)
    try:
        with ExitStack() as stack:
            if name == FORBIDDEN:
                asked = list[bytes]()  # what came where nobody may go, and is answered with what would be right
                outside = stack.enter_context(serve(partial(ANSWERS[GOOD], rng), OUTSIDE, asked))
                answer = partial(_send, partial(_forbidden, right, outside), rng)
            else:
                answer, asked = partial(ANSWERS[name], rng), []
            _fetch_from(stack.enter_context(serve(answer)), folder, asked, must_fail=name == FORBIDDEN)
    finally:
        shutil.rmtree(folder)
        right.unlink()


def _fetch_from(port: int, folder: Path, asked: list[bytes], must_fail: bool) -> None:
    target, start = folder / "file", time.monotonic()
    file = File("set/file", f"http://127.0.0.1:{port}/file", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    try:
        download(file, target, timeout=TIMEOUT, deadline=DEADLINE, allow_loopback_http=True)
    finally:
        size = sum(path.stat().st_size for path in folder.iterdir())
        if size > MOST:
            raise Accepted(f"{size:,} bytes were kept of {len(CONTENT):,}")
        if target.exists() and target.read_bytes() != CONTENT:
            raise Accepted("another file was put in place")
        if asked or (must_fail and target.exists()):
            raise Accepted("it was followed there")
        if time.monotonic() - start > DEADLINE + SLACK:
            raise TooSlow(f"took {time.monotonic() - start:.1f} s, with a deadline of {DEADLINE} s")


@contextmanager
def serve(
    answer: Callable[[socket.socket, int], None], host: str = "127.0.0.1", asked: list[bytes] | None = None
) -> Iterator[int]:
    """A server on the loopback that answers every connection in the same way, but for `/again` with the right file."""
    with closing(socket.create_server((host, 0))) as server:
        port = server.getsockname()[1]

        def work() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=_answer, args=(connection,), daemon=True).start()

        def _answer(connection: socket.socket) -> None:
            with closing(connection), suppress(OSError):
                connection.settimeout(1)
                request = connection.recv(1 << 16)
                if asked is not None:
                    asked.append(request)
                if request.startswith(b"GET /again"):
                    connection.sendall(head(Content_Length=len(CONTENT)) + CONTENT)
                else:
                    answer(connection, port)

        threading.Thread(target=work, daemon=True).start()
        try:
            yield port
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)


def head(status: str = "200 OK", **fields: object) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _send(
    make: Callable[[random.Random, int], bytes], rng: random.Random, connection: socket.socket, port: int
) -> None:
    connection.sendall(make(rng, port))


def _stand_still(rng: random.Random, connection: socket.socket, port: int) -> None:
    connection.sendall((head(Content_Length=len(CONTENT)) + CONTENT)[: rng.randrange(len(CONTENT))])
    time.sleep(attempts.SECONDS + ENDLESS)


def _drip(rng: random.Random, connection: socket.socket, port: int) -> None:
    connection.sendall(head(Content_Length=len(CONTENT)))
    end = time.monotonic() + attempts.SECONDS + ENDLESS
    for byte in CONTENT:
        if time.monotonic() > end:
            return
        connection.sendall(bytes([byte]))
        time.sleep(TIMEOUT / 4)


def _never_end(first: bytes, rng: random.Random, connection: socket.socket, port: int) -> None:
    connection.sendall(first)
    end = time.monotonic() + attempts.SECONDS + ENDLESS
    while time.monotonic() < end:
        connection.sendall(CONTENT if not first.endswith(b"X-Long: ") else b"a" * 65536)


def _wrong(rng: random.Random, port: int) -> bytes:
    content = bytearray(CONTENT)
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return head(Content_Length=len(content)) + content


def _elsewhere(rng: random.Random, port: int) -> bytes:
    return _redirection(rng, rng.choice((f"http://127.0.0.1:{port}/again", "/again", f"http://127.0.0.1:{port}/file")))


def _forbidden(right: Path, outside: int, rng: random.Random, port: int) -> bytes:
    places = (
        f"http://{OUTSIDE}:{outside}/",
        f"ftp://{OUTSIDE}:{outside}/",
        right.as_uri(),
        f"local_file://{right}",
        f"//{OUTSIDE}:{outside}/",
        "//",
        "gopher://x",
        "data:,x",
        "",
    )
    return _redirection(rng, rng.choice(places))


def _redirection(rng: random.Random, place: str) -> bytes:
    return head(rng.choice(("302 Found", "301 Moved", "307 Temporary", "308 Permanent")), Location=place)


def _part(rng: random.Random, port: int) -> bytes:
    spans = (
        "bytes 5-9/10",
        "bytes 0-0/1",
        "bytes -1-0/*",
        "bytes 9-5/3",
        "pages 1-2/3",
        f"bytes 0-{'9' * 30}/{'9' * 30}",
    )
    return head("206 Partial", Content_Range=rng.choice(spans), Content_Length=len(CONTENT)) + CONTENT


def _length(rng: random.Random, port: int) -> bytes:
    lengths = (0, 1, -1, len(CONTENT) + 1, len(CONTENT) - 1, 10**18, "9" * 5000, "x", "", "1e3", "0x10")
    return head(Content_Length=rng.choice(lengths)) + CONTENT


def _no_http(rng: random.Random, port: int) -> bytes:
    return rng.choice((b"", b"\0", b"HTTP/1.1", b"HTTP/9.9 200 OK\r\n\r\n", b"SSH-2.0\r\n", rng.randbytes(2000)))


GOOD = "is as it should be"
ANSWERS: dict[str, Callable[[random.Random, socket.socket, int], None]] = {
    GOOD: partial(_send, lambda rng, port: head(Content_Length=len(CONTENT)) + CONTENT),
    "tells no length": partial(_send, lambda rng, port: head() + CONTENT),
    "tells another length": partial(_send, _length),
    "ends too soon": partial(
        _send, lambda rng, port: head(Content_Length=len(CONTENT)) + CONTENT[: rng.randrange(999)]
    ),
    "sends another file": partial(_send, _wrong),
    "sends elsewhere": partial(_send, _elsewhere),
    "answers another part": partial(_send, _part),
    "speaks no HTTP": partial(_send, _no_http),
    "has none": partial(_send, lambda rng, port: head(rng.choice(("404 No", "500 No", "429 No", "204 No", "304 No")))),
    "compresses": partial(_send, lambda rng, port: head(Content_Encoding="gzip", Content_Length=9) + b"\x1f\x8b" * 5),
    "stands still": _stand_still,
    "drips": _drip,
    "never ends": partial(_never_end, head()),
    "never ends in pieces": partial(_never_end, head(Transfer_Encoding="chunked") + b"FFFFFFFF\r\n"),
    "never ends its head": partial(_never_end, b"HTTP/1.1 200 OK\r\nX-Long: "),
}
