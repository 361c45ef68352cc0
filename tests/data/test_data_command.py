"""`doxa data get` when something goes wrong: one line that says what, and what has arrived is kept."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from doxa import data
from doxa.data import catalogue
from doxa.data.download import download
from doxa_cli.app import main
from for_downloads import Server, redirect, send, send_range

NAME = "temperature/uccle"
FILE = data.card(NAME).files[0]
# As `doxa` does it, but for the server, which is one of this machine.
SCRIPT = """
import dataclasses, functools, sys
from doxa.data import catalogue
from doxa.data.download import download
name, url, *arguments = sys.argv[1:]
catalogue.download = functools.partial(download, allow_loopback_http=True)
card = catalogue.card(name)
catalogue._CARDS[name] = dataclasses.replace(card, files=(dataclasses.replace(card.files[0], url=url),))
from doxa_cli.entry import main
sys.argv[1:] = ["data", "get", name, *arguments]
sys.exit(main())
"""

Run = Callable[..., SimpleNamespace]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`doxa data …` in this process: its code, its output and its one line of errors."""

    def run(*arguments: object) -> SimpleNamespace:
        capsys.readouterr()
        code = main(["data", *map(str, arguments), *(["--quiet"] if arguments[0] == "get" else [])])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


@pytest.fixture
def url(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Where the file of the set is published, for this test, and DOXA_DATA an empty folder."""
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    monkeypatch.setattr(catalogue, "download", functools.partial(download, allow_loopback_http=True))
    file = dataclasses.replace(FILE, url=f"{server.url}/a")
    monkeypatch.setitem(catalogue._CARDS, NAME, dataclasses.replace(data.card(NAME), files=(file,)))
    return file.url


def refused(ended: SimpleNamespace, match: str) -> None:
    assert ended.code == 1
    assert ended.out == ""
    assert re.fullmatch(rf"doxa: [^\n]*({match})[^\n]*\n", ended.err), ended.err


BAD = {
    "wrong bytes": (lambda h: send(h, bytes(FILE.bytes), FILE.bytes), "is not the file it should be: its SHA-256 is"),
    "another length": (lambda h: send(h, b"x", 1), f"the server announces 1 bytes, expected {FILE.bytes}"),
    "an error": (lambda h: h.send_error(503), "the server answered 503"),
    "ftp": (lambda h: redirect(h, "ftp://example.org/a"), "is not an https address"),
    "terminal codes": (lambda h: redirect(h, "http://\x1b]31mred/"), "no address|is not an https address"),
    "silence": (lambda h: time.sleep(1), r"no answer for 0\.2 s"),
    "a cut": (lambda h: send_range(h, bytes(FILE.bytes), 7), r"after 35 of \d+ bytes; try again, which goes on from"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_server_is_one_line(kind: str, run: Run, server: Server, url: str) -> None:
    server.answers["/a"], match = BAD[kind]
    ended = run("get", NAME, "--timeout", "0.2", "--deadline", "20")
    refused(ended, match)
    assert "\x1b" not in ended.err


def test_deadline_is_one_s_own(run: Run, server: Server, url: str) -> None:
    def drip(handler: object) -> None:
        send(handler, b"", FILE.bytes)
        while not server.enough.wait(0.02):
            handler.wfile.write(b"x")

    server.answers["/a"] = drip
    refused(run("get", NAME, "--deadline", "0.2"), r"it was not finished within 0\.2 s; try again, which goes on from")
    refused(run("get", NAME, "--deadline", "-1"), "deadline must be a positive, finite number")
    refused(run("get", NAME, "--timeout", "nan"), "timeout must be a positive, finite number")


def test_damaged_file_is_one_line_that_says_how_to_mend_it(run: Run, url: str, tmp_path: Path) -> None:
    path = tmp_path / FILE.path
    path.parent.mkdir()
    path.write_bytes(b"no temperatures")
    refused(run("get", NAME), rf"move it aside and run: doxa data get {NAME}")


@pytest.mark.parametrize("command", [("list",), ("path", "mnist"), ("get", "mnist"), ("list", "--json")])
def test_want_of_a_folder_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    monkeypatch.setenv("DOXA_DATA", "/nowhere")
    refused(run(*command), "DOXA_DATA names /nowhere, which is no folder")
    monkeypatch.delenv("DOXA_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # a user that the system does not know
    refused(run(*command), "there is no home folder that could hold a cache; set HOME or XDG_CACHE_HOME")


def test_control_c_keeps_what_has_arrived_and_says_so(run: Run, server: Server, url: str, tmp_path: Path) -> None:
    content = bytes(FILE.bytes)

    def half(handler: object) -> None:
        send_range(handler, content, 1000)
        server.enough.wait(30)

    server.answers["/a"] = half
    command = [sys.executable, "-c", SCRIPT, NAME, url, "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    part = tmp_path / f"{FILE.path}.part"
    begin = time.monotonic()
    while not (part.exists() and part.stat().st_size == 1000) and time.monotonic() - begin < 60:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    target = tmp_path / FILE.path
    assert err == (
        f"doxa: interrupted while fetching {target}; the 1000 bytes in {part} are kept, "
        "and the next call goes on from there\n"
    )
    server.requests.clear()
    server.answers["/a"] = lambda handler: send_range(handler, content, len(content))
    refused(run("get", NAME), "not the file it should be")  # zeros, as far as they were needed here
    assert server.ranges()[0] == "bytes=1000-"


def test_what_was_fetched_is_told(
    run: Run, server: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"made up"
    card = data.card(NAME)
    file = dataclasses.replace(card.files[0], bytes=7, sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(catalogue._CARDS, NAME, dataclasses.replace(card, files=(file,)))
    server.answers["/a"] = lambda handler: send(handler, content, 7)
    ended = run("get", NAME, "--json")
    assert (ended.code, json.loads(ended.out)) == (0, {"name": NAME, "paths": [str(tmp_path / FILE.path)]})
