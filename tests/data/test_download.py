"""Downloads, from a server on this machine that is good, or bad in every way we could think of."""

from __future__ import annotations

import hashlib
import os
import resource
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from doxa.data.card import File
from doxa.data.download import download
from doxa.errors import BadInput, BrokenFile
from doxa.version import VERSION

CONTENT = bytes(range(256)) * 1200  # several blocks
Answer = Callable[[BaseHTTPRequestHandler], None]


def send(handler: BaseHTTPRequestHandler, body: bytes, length: int | None) -> None:
    handler.send_response(200)
    if length is not None:
        handler.send_header("Content-Length", str(length))
    handler.end_headers()
    handler.wfile.write(body)


class Server:
    """Gives each path the answer set for it; `enough` releases those that hang."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.enough = threading.Event()
        self.agents: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.agents.append(self.headers["User-Agent"])
                answer = outer.answers.get(self.path)
                if answer is None:
                    self.send_error(404)
                else:
                    answer(self)

            def log_message(self, *parts: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.enough.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server_instance = Server()
    yield server_instance
    server_instance.close()


@pytest.fixture
def file(server: Server) -> File:
    server.answers["/a"] = lambda handler: send(handler, CONTENT, len(CONTENT))
    return File("set/a", f"{server.url}/a", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


def refused(file: File, tmp_path: Path, match: str, timeout: float = 5.0) -> str:
    """What a download that must fail says; it must leave nothing."""
    with pytest.raises(BrokenFile, match=match) as caught:
        download(file, tmp_path / "set" / "a", timeout=timeout)
    assert left(tmp_path) == []
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
    assert server.agents == [f"doxa/{VERSION}"]


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


def test_redirection_is_followed(file: File, server: Server, tmp_path: Path) -> None:
    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", file.url)
        handler.end_headers()

    server.answers["/moved"] = elsewhere
    moved = File("set/a", f"{server.url}/moved", file.bytes, file.sha256)
    assert download(moved, tmp_path / "a").read_bytes() == CONTENT


def test_wrong_bytes_are_refused_with_both_sums(file: File, server: Server, tmp_path: Path) -> None:
    wrong = CONTENT[:-1] + b"?"
    server.answers["/a"] = lambda handler: send(handler, wrong, len(wrong))
    error_text = refused(file, tmp_path, "not the file it should be")
    assert hashlib.sha256(wrong).hexdigest() in error_text
    assert f"expected {file.sha256}" in error_text


@pytest.mark.parametrize("length", [len(CONTENT), None])
def test_truncated_answer_is_refused(file: File, server: Server, tmp_path: Path, length: int | None) -> None:
    server.answers["/a"] = lambda handler: send(handler, CONTENT[:100_000], length)
    refused(file, tmp_path, f"ended after 100000 of {len(CONTENT)} bytes|IncompleteRead")


def test_answer_without_end_is_cut_off(file: File, server: Server, tmp_path: Path) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        try:
            send(handler, CONTENT, None)
            while not server.enough.is_set():
                handler.wfile.write(CONTENT)
        except OSError:
            pass

    server.answers["/a"] = endless
    refused(file, tmp_path, f"goes on after the {len(CONTENT)} bytes expected")


def test_missing_page_says_the_code_and_where_to_put_the_file(server: Server, tmp_path: Path) -> None:
    error_text = refused(
        File("set/a", f"{server.url}/gone", 1, "0" * 64), tmp_path, "the server answered 404 Not Found"
    )
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
        handler.wfile.flush()
        server.enough.wait(10)

    server.answers["/a"] = half
    refused(file, tmp_path, r"no answer for 0\.2 s", timeout=0.2)


def test_nonsense_for_an_answer_is_refused(file: File, server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = lambda handler: handler.wfile.write(b"hello\r\n\r\n") and None
    refused(file, tmp_path, "could not be fetched")


def test_interruption_leaves_nothing(file: File, tmp_path: Path) -> None:
    def stop(known: File, done: int) -> None:
        assert len(left(tmp_path)) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(file, tmp_path / "a", stop)
    assert left(tmp_path) == []


def test_full_disk_is_said_and_leaves_nothing(file: File, tmp_path: Path) -> None:
    # A limit on the size of files stands in for the end of the disk: it strikes in the middle of a block.
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, usual[1]))
    try:
        refused(file, tmp_path, r"set/a cannot be written \(File too large\); make room")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def test_folder_that_cannot_be_written_is_said(file: File, tmp_path: Path) -> None:
    (tmp_path / "set").write_bytes(b"a file where a folder should be")
    with pytest.raises(BrokenFile, match="set/a cannot be written"):
        download(file, tmp_path / "set" / "a")
    if os.geteuid() != 0:  # for root there is no such folder
        tmp_path.chmod(0o500)
        with pytest.raises(BrokenFile, match=r"cannot be written \(Permission denied\)"):
            download(file, tmp_path / "a")
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_timeout_must_be_some_seconds(file: File, tmp_path: Path, timeout: float) -> None:
    with pytest.raises(BadInput, match="timeout must be a positive, finite number"):
        download(file, tmp_path / "a", timeout=timeout)
