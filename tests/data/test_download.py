"""Downloads, from a server on this machine that is good, or bad in every way we could think of."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from doxa.data import download as published
from doxa.data.card import File
from doxa.errors import BadInput, BrokenFile, Interrupted
from doxa.storage.lock import LOCK
from doxa.version import VERSION
from for_downloads import Server, redirect, send, send_range

CONTENT = bytes(range(256)) * 1200  # several blocks
download = partial(published.download, allow_loopback_http=True)


@pytest.fixture
def file(server: Server) -> File:
    server.answers["/a"] = lambda handler: send(handler, CONTENT, len(CONTENT))
    return File("set/a", f"{server.url}/a", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


def small(server: Server, content: bytes) -> File:
    return File("set/a", f"{server.url}/a", len(content), hashlib.sha256(content).hexdigest())


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def refused(file: File, tmp_path: Path, match: str, *kept: str, timeout: float = 5.0, deadline: float = 20.0) -> str:
    """What a download that must fail says; it must leave nothing but what the next one can go on with."""
    with pytest.raises(BrokenFile, match=match) as caught:
        download(file, tmp_path / "set" / "a", timeout=timeout, deadline=deadline)
    assert left(tmp_path) == list(kept)
    return str(caught.value)


def test_good_file_arrives_whole_with_its_progress(file: File, server: Server, tmp_path: Path) -> None:
    progress_bytes: list[int] = []
    target = tmp_path / "set" / "a"
    assert download(file, target, lambda known, done: progress_bytes.append(done)) == target
    assert target.read_bytes() == CONTENT
    assert left(tmp_path) == ["a"]
    assert progress_bytes == sorted(progress_bytes)
    assert len(progress_bytes) > 1
    assert progress_bytes[-1] == len(CONTENT)
    (request,) = server.requests
    assert request["User-Agent"] == f"doxa/{VERSION}"
    assert request["Accept-Encoding"] == "identity"
    assert "Range" not in request


def test_permissions_are_those_of_any_new_file(file: File, tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    assert download(file, tmp_path / "a").stat().st_mode == usual.stat().st_mode


def test_file_that_is_there_is_replaced_only_by_a_good_one(file: File, server: Server, tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    good = server.answers["/a"]
    server.answers["/a"] = lambda handler: send(handler, b"bad", 3)
    with pytest.raises(BrokenFile):
        download(file, target)
    assert target.read_bytes() == b"old"
    server.answers["/a"] = good
    download(file, target)
    assert target.read_bytes() == CONTENT
    assert left(tmp_path) == ["a"]


def test_answer_without_a_length_is_taken(file: File, server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = lambda handler: send(handler, CONTENT, None)
    assert download(file, tmp_path / "a").read_bytes() == CONTENT


def in_chunks(handler: BaseHTTPRequestHandler, *chunks: bytes) -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for chunk in chunks:
        handler.wfile.write(chunk)


def test_answer_in_chunks_is_taken(file: File, server: Server, tmp_path: Path) -> None:
    chunks = [b"10000\r\n" + CONTENT[i : i + 65536].ljust(65536, b"?") + b"\r\n" for i in range(0, len(CONTENT), 65536)]
    server.answers["/a"] = lambda handler: in_chunks(handler, *chunks, b"0\r\n\r\n")
    assert download(file, tmp_path / "a").read_bytes() == CONTENT, "what is beyond the last byte is not looked at"


@pytest.mark.parametrize("chunk", [b"-5\r\n", b"zz\r\n", b"ffffffffffffffff\r\nhello", b"5\r\nhelloXX5\r\n"])
def test_broken_chunks_are_refused(file: File, server: Server, tmp_path: Path, chunk: bytes) -> None:
    server.answers["/a"] = lambda handler: in_chunks(handler, chunk)
    with pytest.raises(BrokenFile, match="could not be fetched"):
        download(file, tmp_path / "a", timeout=5)
    assert "a" not in left(tmp_path)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirection_is_followed(file: File, server: Server, tmp_path: Path, code: int) -> None:
    for number in range(4):
        server.answers[f"/{number}"] = partial(redirect, place=f"/{number + 1}", code=code)
    server.answers["/4"] = partial(redirect, place=file.url, code=code)
    moved = File("set/a", f"{server.url}/0", file.bytes, file.sha256)
    assert download(moved, tmp_path / "a").read_bytes() == CONTENT


@pytest.mark.parametrize("place", ["/données/ä", "/%C3%A9?q=%20", "/日本"])
def test_redirection_in_raw_utf_8_is_followed_to_the_same_bytes(
    file: File, server: Server, tmp_path: Path, place: str
) -> None:
    quoted = urllib.parse.quote(place, safe="/%?=")
    server.answers[quoted] = server.answers["/a"]
    # The server writes a header as Latin-1: these are the bytes of UTF-8.
    server.answers["/a"] = lambda handler: redirect(handler, place.encode().decode("latin-1"))
    assert download(file, tmp_path / "a").read_bytes() == CONTENT


def test_redirections_have_an_end(file: File, server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = lambda handler: redirect(handler, "/b")
    server.answers["/b"] = lambda handler: redirect(handler, "/a")
    refused(file, tmp_path, "more than 5 redirections")
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    "place",
    [
        "http://example.org/a",
        "ftp://127.0.0.1/a",
        "file:///etc/passwd",
        "data:,hello",
        "http://127.0.0.1.example.org/a",
        "http://localhost@example.org/a",
        "https:///a",
        "gopher://127.0.0.1/",
        "https://[::1",
        "http://127.0.0.1:99999/",
    ],
)
def test_redirection_to_anything_but_https_is_not_followed(
    file: File, server: Server, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers["/a"] = lambda handler: redirect(handler, place)
    connect = socket.create_connection
    places: list[object] = []
    monkeypatch.setattr(socket, "create_connection", lambda to, *rest: places.append(to) or connect(to, *rest))
    refused(file, tmp_path, "is not an https address, and no other is followed|no address")
    assert places == [("127.0.0.1", server.http.server_port)]


def test_redirection_with_an_endless_body_is_not_read(file: File, server: Server, tmp_path: Path) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        redirect(handler, "/b")
        while not server.enough.is_set():
            handler.wfile.write(CONTENT)

    server.answers["/b"], server.answers["/a"] = server.answers["/a"], endless
    assert download(file, tmp_path / "a", deadline=20).read_bytes() == CONTENT


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a", "ftp://example.org/a", "file:///etc/passwd", "/etc/passwd"])
def test_loopback_is_for_those_who_ask_for_it(tmp_path: Path, url: str) -> None:
    with pytest.raises(BrokenFile, match="is not an https address, and no other is followed"):
        published.download(File("set/a", url, 1, "0" * 64), tmp_path / "set" / "a")
    assert not (tmp_path / "set").exists()


def test_plain_speech_where_tls_is_expected_is_refused(file: File, server: Server, tmp_path: Path) -> None:
    secure = File("set/a", file.url.replace("http:", "https:"), file.bytes, file.sha256)
    refused(secure, tmp_path, "could not be fetched: .*SSL")


def test_wrong_bytes_are_refused_with_both_sums(file: File, server: Server, tmp_path: Path) -> None:
    wrong = CONTENT[:-1] + b"?"
    server.answers["/a"] = lambda handler: send(handler, wrong, len(wrong), ETag='"wrong"')
    error_text = refused(file, tmp_path, "not the file it should be")
    assert hashlib.sha256(wrong).hexdigest() in error_text
    assert f"expected {file.sha256}" in error_text
    assert len(server.requests) == 1


@pytest.mark.parametrize("length", [0, 3, len(CONTENT) - 1, len(CONTENT) + 1, 10**18])
def test_another_length_is_refused_before_the_first_byte(
    file: File, server: Server, tmp_path: Path, length: int
) -> None:
    server.answers["/a"] = lambda handler: send(handler, CONTENT, length)
    refused(file, tmp_path, f"the server announces {length} bytes, expected {len(CONTENT)}")


@pytest.mark.parametrize("length", [len(CONTENT), None])
def test_truncated_answer_is_kept_for_the_next_call(
    file: File, server: Server, tmp_path: Path, length: int | None
) -> None:
    good = server.answers["/a"]
    server.answers["/a"] = lambda handler: send(handler, CONTENT[:100_000], length)
    error_text = refused(file, tmp_path, f"(early|IncompleteRead).*, after 100000 of {len(CONTENT)} bytes", "a.part")
    assert f"which goes on from the 100000 bytes in {tmp_path}/set/a.part" in error_text
    assert len(server.requests) == 1 + published.CONNECTIONS, "the first brought something"
    server.answers["/a"] = good
    assert download(file, tmp_path / "set" / "a").read_bytes() == CONTENT
    assert left(tmp_path) == ["a"]


@pytest.mark.parametrize("length", [None, len(CONTENT)])
def test_answer_without_end_is_not_read_beyond_the_last_byte(
    file: File, server: Server, tmp_path: Path, length: int | None
) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        send(handler, CONTENT[1:], length)
        while not server.enough.is_set():
            handler.wfile.write(CONTENT)

    server.answers["/a"] = endless
    most: list[int] = []
    with pytest.raises(BrokenFile, match="not the file it should be"):
        download(file, tmp_path / "a", lambda known, done: most.append(done))
    assert max(most) == len(CONTENT)
    assert left(tmp_path) == []


def test_what_is_packed_on_the_way_is_never_unpacked(file: File, server: Server, tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(100_000_000), 1)
    packed = small(server, bomb)
    server.answers["/a"] = lambda handler: send(handler, bomb, len(bomb), Content_Encoding="gzip")
    assert download(packed, tmp_path / "a").read_bytes() == bomb, "bytes as they are published"
    (tmp_path / "a").unlink()
    refused(file, tmp_path, "the server announces")


def test_missing_page_says_the_code_and_where_to_put_the_file(server: Server, tmp_path: Path) -> None:
    gone = File("set/a", f"{server.url}/gone", 1, "0" * 64)
    error_text = refused(gone, tmp_path, "the server answered 404 Not Found")
    assert error_text.startswith(f"{server.url}/gone could not be fetched")
    assert error_text.endswith(f"put it at {tmp_path}/set/a")


def test_server_that_is_not_there_is_said(server: Server, tmp_path: Path) -> None:
    server.close()
    refused(File("set/a", f"{server.url}/a", 1, "0" * 64), tmp_path, "could not be fetched: .*refused")


def test_silent_server_is_given_up(file: File, server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = lambda handler: server.enough.wait(10) and None
    refused(file, tmp_path, r"no answer for 0\.2 s", timeout=0.2)


def test_server_that_falls_silent_is_given_up(file: File, server: Server, tmp_path: Path) -> None:
    def half(handler: BaseHTTPRequestHandler) -> None:
        send(handler, CONTENT[:100_000], len(CONTENT))
        server.enough.wait(10)

    server.answers["/a"] = half
    refused(file, tmp_path, r"no answer for 0\.2 s", "a.part", timeout=0.2)


def drip_status(handler: BaseHTTPRequestHandler, server: Server) -> None:
    handler.wfile.write(b"HTTP/1.1 200 ")
    drip(handler, server, b"x")


def drip_headers(handler: BaseHTTPRequestHandler, server: Server) -> None:
    handler.send_response(200)
    handler.flush_headers()
    drip(handler, server, b"x")


def drip_interim_answers(handler: BaseHTTPRequestHandler, server: Server) -> None:
    drip(handler, server, b"HTTP/1.1 100 Continue\r\n\r\n")


def drip_body(handler: BaseHTTPRequestHandler, server: Server) -> None:
    send(handler, b"", len(CONTENT))
    drip(handler, server, b"\0")


def drip_chunk_sizes(handler: BaseHTTPRequestHandler, server: Server) -> None:
    in_chunks(handler)
    drip(handler, server, b"0")


def drip(handler: BaseHTTPRequestHandler, server: Server, drop: bytes) -> None:
    while not server.enough.wait(0.02):
        handler.wfile.write(drop)


@pytest.mark.parametrize("kind", [drip_status, drip_headers, drip_interim_answers, drip_body, drip_chunk_sizes])
def test_drops_end_at_the_deadline(file: File, server: Server, tmp_path: Path, kind) -> None:
    server.answers["/a"] = lambda handler: kind(handler, server)
    begin = time.monotonic()
    kept = ["a.part"] if kind is drip_body else []
    refused(file, tmp_path, r"it was not finished within 0\.3 s", *kept, timeout=5, deadline=0.3)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("answer", [b"hello\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200, b"\0" * 70_000])
def test_nonsense_for_an_answer_is_refused(file: File, server: Server, tmp_path: Path, answer: bytes) -> None:
    server.answers["/a"] = lambda handler: handler.wfile.write(answer) and None
    refused(file, tmp_path, "could not be fetched")


@pytest.mark.parametrize("status", [201, 204, 206, 304, 416, 500, 503])
def test_only_a_whole_file_is_an_answer(file: File, server: Server, tmp_path: Path, status: int) -> None:
    def odd(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.end_headers()
        handler.wfile.write(CONTENT)

    server.answers["/a"] = odd
    refused(file, tmp_path, f"the server answered {status}")


def test_connection_cut_at_every_place_is_taken_up_there(server: Server, tmp_path: Path) -> None:
    content = bytes(range(40))
    known = small(server, content)
    for place in range(1, len(content)):
        server.requests.clear()
        cuts = iter([place])
        server.answers["/a"] = lambda handler, cuts=cuts: send_range(handler, content, next(cuts, 100))
        assert download(known, tmp_path / "a").read_bytes() == content
        assert server.ranges() == [None, f"bytes={place}-"]
        assert server.requests[1]["If-Range"] == '"one"'
        assert left(tmp_path) == ["a"]
        (tmp_path / "a").unlink()


def test_connection_cut_at_every_place_before_the_first_byte_is_made_again(server: Server, tmp_path: Path) -> None:
    content = bytes(range(40))
    known = small(server, content)
    answer = b'HTTP/1.0 200 OK\r\nServer: x\r\nETag: "one"\r\nContent-Length: 40\r\n\r\n'
    for place in range(len(answer) + 1):
        cuts = iter([answer[:place]])

        def cut(handler: BaseHTTPRequestHandler, cuts=cuts) -> None:
            beginning = next(cuts, None)
            if beginning is None:
                send_range(handler, content, 100)
            else:
                handler.wfile.write(beginning)

        server.answers["/a"] = cut
        if answer[:place].endswith(b"Length: 4"):  # this beginning of an answer is another answer
            refused(known, tmp_path, "the server announces 4 bytes, expected 40")
        assert download(known, tmp_path / "set" / "a").read_bytes() == content
        assert left(tmp_path) == ["a"]
        (tmp_path / "set" / "a").unlink()
        (tmp_path / "set").rmdir()


def test_a_few_bytes_on_each_connection_come_together_over_several_calls(server: Server, tmp_path: Path) -> None:
    content = bytes(range(40))
    known = small(server, content)
    server.answers["/a"] = lambda handler: send_range(handler, content, 3)
    for call in (1, 2):
        refused(known, tmp_path, f"after {15 * call} of 40 bytes", "a.part", "a.part.json")
    assert download(known, tmp_path / "set" / "a").read_bytes() == content
    assert left(tmp_path) == ["a"]


def begun(folder: Path, content: bytes, note: str | None = None) -> Path:
    """What a killed download left."""
    target = folder / "set" / "a"
    target.parent.mkdir()
    target.with_name("a.part").write_bytes(content)
    if note is not None:
        target.with_name("a.part.json").write_text(note)
    return target


def test_another_version_on_the_server_begins_anew(server: Server, tmp_path: Path) -> None:
    content = bytes(range(40))
    known = small(server, content)
    target = begun(tmp_path, b"x" * 12, f'{{"url": "{known.url}", "validator": "\\"old\\""}}')
    server.answers["/a"] = lambda handler: send_range(handler, content, 100)
    assert download(known, target).read_bytes() == content
    assert [(r["Range"], r["If-Range"]) for r in server.requests] == [("bytes=12-", '"old"')]


def test_server_that_ignores_ranges_begins_anew(file: File, server: Server, tmp_path: Path) -> None:
    target = begun(tmp_path, b"x" * 12)
    assert download(file, target).read_bytes() == CONTENT
    assert server.ranges() == ["bytes=12-"]
    assert left(tmp_path) == ["a"]


@pytest.mark.parametrize("note", ["", "{", "[" * 5000, "null", '{"url": 1, "validator": "x"}', '{"validator": "x"}'])
@pytest.mark.parametrize("start", [b"\0\1\2", b"xyz"])
def test_wrong_beginning_is_found_out_and_fetched_again(
    server: Server, tmp_path: Path, note: str, start: bytes
) -> None:
    content = bytes(range(40))
    target = begun(tmp_path, start, note)
    server.answers["/a"] = lambda handler: send_range(handler, content, 100)
    assert download(small(server, content), target).read_bytes() == content
    assert server.ranges() == (["bytes=3-"] if start == b"\0\1\2" else ["bytes=3-", None])


@pytest.mark.parametrize("validator", ["a\\r\\nX: y", "é", "", "x" * 300, "\\u0000"])
def test_header_made_of_a_damaged_note_is_not_sent(server: Server, tmp_path: Path, validator: str) -> None:
    content = bytes(range(40))
    known = small(server, content)
    target = begun(tmp_path, content[:3], f'{{"url": "{known.url}", "validator": "{validator}"}}')
    server.answers["/a"] = lambda handler: send_range(handler, content, 100)
    assert download(known, target).read_bytes() == content
    assert "If-Range" not in server.requests[0]


def test_all_bytes_that_are_there_already_need_no_server(tmp_path: Path) -> None:
    content = bytes(range(40))
    known = File("set/a", "https://127.0.0.1:1/a", 40, hashlib.sha256(content).hexdigest())
    target = begun(tmp_path, content)
    assert published.download(known, target).read_bytes() == content
    assert left(tmp_path) == ["a"]


def test_more_bytes_than_there_are_begin_anew(file: File, server: Server, tmp_path: Path) -> None:
    target = begun(tmp_path, CONTENT + b"x")
    assert download(file, target).read_bytes() == CONTENT
    assert server.ranges() == [None]


@pytest.mark.parametrize(
    "span",
    [
        "bytes 0-39/40",
        "bytes 4-39/40",
        "bytes 2-39/40",
        "bytes 3-39/41",
        "bytes 3-39",
        "bytes */40",
        "3-39/40",
        "bytes 3-" + "9" * 5000 + "/40",
        None,
    ],
)
def test_another_range_than_was_asked_for_is_not_added(server: Server, tmp_path: Path, span: str | None) -> None:
    content = bytes(range(40))
    target = begun(tmp_path, content[:3])

    def wrong(handler: BaseHTTPRequestHandler) -> None:
        if "Range" not in handler.headers:
            return send(handler, content, 40)
        handler.send_response(206)
        if span is not None:
            handler.send_header("Content-Range", span)
        handler.end_headers()
        handler.wfile.write(content[3:])
        return None

    server.answers["/a"] = wrong
    assert download(small(server, content), target).read_bytes() == content
    assert server.ranges() == ["bytes=3-", None]


def test_range_that_does_not_exist_begins_anew(server: Server, tmp_path: Path) -> None:
    content = bytes(range(40))
    target = begun(tmp_path, content[:3])
    server.answers["/a"] = lambda h: h.send_error(416) if "Range" in h.headers else send(h, content, 40)
    assert download(small(server, content), target).read_bytes() == content
    assert server.ranges() == ["bytes=3-", None]


@pytest.mark.parametrize("silent", [False, True])
def test_connections_that_bring_something_are_followed_by_others(server: Server, tmp_path: Path, silent: bool) -> None:
    content, steps = os.urandom(20 * published.ADVANCE + 7), 20
    known = small(server, content)

    def some(handler: BaseHTTPRequestHandler) -> None:
        send_range(handler, content, published.ADVANCE)
        if silent and len(server.requests) in (3, 7):
            server.enough.wait(20)

    server.answers["/a"] = some
    assert download(known, tmp_path / "a", timeout=0.5).read_bytes() == content
    assert len(server.requests) == steps + 1


def test_connections_that_bring_next_to_nothing_are_given_up_with_longer_and_longer_pauses(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(20 * published.ADVANCE)
    known = small(server, content)
    server.answers["/a"] = lambda handler: send_range(handler, content, published.ADVANCE - 1)
    pauses: list[float] = []
    monkeypatch.setattr(published, "PAUSE", 0.5)
    monkeypatch.setattr("doxa.data.download.time.sleep", pauses.append)
    refused(known, tmp_path, "ended too early|IncompleteRead", "a.part", "a.part.json", deadline=60)
    assert pauses == [0.5, 1.0, 2.0, 4.0]
    assert len(server.requests) == published.CONNECTIONS


def test_no_pause_is_longer_than_the_deadline(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(40))
    known = small(server, content)
    server.answers["/a"] = lambda handler: send_range(handler, content, 1)
    monkeypatch.setattr(published, "PAUSE", 1000.0)
    refused(known, tmp_path, r"not finished within 0\.5 s", "a.part", "a.part.json", deadline=0.5)
    assert len(server.requests) == 1


def test_wrong_pieces_for_ever_are_given_up(server: Server, tmp_path: Path) -> None:
    content = bytes(range(40))
    known = small(server, content)
    server.answers["/a"] = lambda handler: send_range(handler, b"?" * 40, 20)
    refused(known, tmp_path, "not the file it should be|ended too early", "a.part", "a.part.json")
    assert len(server.requests) == published.CONNECTIONS


def test_interruption_keeps_what_has_arrived(file: File, server: Server, tmp_path: Path) -> None:
    def stop(known: File, done: int) -> None:
        raise KeyboardInterrupt

    target = tmp_path / "a"
    with pytest.raises(Interrupted, match=rf"interrupted while fetching {re.escape(str(target))}; the \d+ bytes in"):
        download(file, target, stop)
    assert left(tmp_path) == ["a.part"]
    size = (tmp_path / "a.part").stat().st_size
    assert size > 0
    server.answers["/a"] = lambda handler: send_range(handler, CONTENT, len(CONTENT))
    assert download(file, target).read_bytes() == CONTENT
    assert server.ranges()[-1] == f"bytes={size}-"


def test_killed_download_is_taken_up(file: File, server: Server, tmp_path: Path) -> None:
    def half(handler: BaseHTTPRequestHandler) -> None:
        send_range(handler, CONTENT, 100_000)
        server.enough.wait(30)

    server.answers["/a"] = half
    target = tmp_path / "a"
    code = f"""
from pathlib import Path
from doxa.data.card import File
from doxa.data.download import download
file = File("set/a", {file.url!r}, {file.bytes}, {file.sha256!r})
say = lambda known, done: print(done, flush=True)
download(file, Path({str(target)!r}), say, allow_loopback_http=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 100_000:
            pass
        with pytest.raises(BadInput, match=f"is being written by process {process.pid}"):
            download(file, target)
        process.send_signal(signal.SIGKILL)
    assert left(tmp_path) == [LOCK, "a.part", "a.part.json"]
    server.requests.clear()
    server.answers["/a"] = lambda handler: send_range(handler, CONTENT, len(CONTENT))
    assert download(file, target).read_bytes() == CONTENT
    assert server.ranges() == ["bytes=100000-"]
    assert left(tmp_path) == ["a"]


def test_kill_before_the_file_is_put_in_place_leaves_its_part_alone(
    file: File, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def kill(source: Path, target: Path) -> None:
        if target == tmp_path / "a":
            raise SystemExit
        replace(source, target)

    server.answers["/a"] = lambda handler: send_range(handler, CONTENT, len(CONTENT))
    with monkeypatch.context() as patch:
        patch.setattr("doxa.data.part.os.replace", kill)
        with pytest.raises(SystemExit):
            download(file, tmp_path / "a")
    assert left(tmp_path) == ["a.part"]
    server.requests.clear()
    assert download(file, tmp_path / "a").read_bytes() == CONTENT
    assert (server.requests, left(tmp_path)) == ([], ["a"])


def test_full_disk_is_said_and_taken_up(file: File, server: Server, tmp_path: Path) -> None:
    # A limit on the size of files stands in for the end of the disk: it strikes in the middle of a block.
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, usual[1]))
    try:
        refused(file, tmp_path, r"set/a cannot be written \(File too large\); make room", "a.part")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    server.answers["/a"] = lambda handler: send_range(handler, CONTENT, len(CONTENT))
    assert download(file, tmp_path / "set" / "a").read_bytes() == CONTENT
    assert server.ranges()[-1] == "bytes=100000-"


@pytest.mark.parametrize("call", ["ftruncate", "pwrite", "fsync", "replace"])
def test_failing_call_puts_nothing_in_place(
    file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "a"
    with monkeypatch.context() as patch:
        patch.setattr(f"doxa.data.part.os.{call}", fail)
        with pytest.raises(BrokenFile, match=r"cannot (be written|write in) .*No space left on device"):
            download(file, target)
        assert not target.exists()
    assert download(file, target).read_bytes() == CONTENT
    assert left(tmp_path) == ["a"]


def test_folder_that_cannot_be_written_is_said(file: File, tmp_path: Path) -> None:
    (tmp_path / "set").write_bytes(b"a file where a folder should be")
    with pytest.raises(BadInput, match="set is a file"):
        download(file, tmp_path / "set" / "a")
    if os.geteuid() != 0:  # for root there is no such folder
        tmp_path.chmod(0o500)
        with pytest.raises(BrokenFile, match="Permission denied"):
            download(file, tmp_path / "a")
        tmp_path.chmod(0o700)


def test_part_that_leads_elsewhere_is_not_written_to(file: File, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    part = tmp_path / "a.part"
    part.symlink_to(tmp_path / "mine")
    with pytest.raises(BrokenFile, match="cannot be written"):
        download(file, tmp_path / "a")
    assert (tmp_path / "mine").read_bytes() == b"mine"
    part.unlink()
    os.mkfifo(part)
    with pytest.raises(BrokenFile, match="no file that a download could go on with; remove it"):
        download(file, tmp_path / "a")


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["timeout", "deadline"])
def test_waits_must_be_some_seconds(file: File, tmp_path: Path, name: str, seconds: float) -> None:
    with pytest.raises(BadInput, match=f"{name} must be a positive, finite number"):
        download(file, tmp_path / "a", **{name: seconds})


def test_waits_may_be_very_long(file: File, tmp_path: Path) -> None:
    assert download(file, tmp_path / "a", timeout=1e300, deadline=1e300).read_bytes() == CONTENT
