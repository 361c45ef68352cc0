"""Downloads over TLS, by a certificate made for this machine alone."""

from __future__ import annotations

import hashlib
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from doxa.data.card import File
from doxa.data.download import download
from doxa.errors import BrokenFile
from for_downloads import Server, redirect, send, send_range

CONTENT = bytes(range(256)) * 1200
SUBJECT = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("certificate")
    paths = folder / "certificate.pem", folder / "key.pem"
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    command = ["openssl", "req", *kind, *SUBJECT, "-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return paths


@pytest.fixture
def secure(server: Server, certificate: tuple[Path, Path]) -> Server:
    """The server, behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True, do_handshake_on_connect=False)
    server.url = server.url.replace("http://127.0.0.1", "https://localhost")
    return server


@pytest.fixture
def trusted(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate is one that this machine trusts."""
    monkeypatch.setattr("ssl.create_default_context", partial(ssl.create_default_context, cafile=certificate[0]))


@pytest.fixture
def file(secure: Server) -> File:
    secure.answers["/a"] = lambda handler: send(handler, CONTENT, len(CONTENT))
    return File("set/a", f"{secure.url}/a", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@pytest.mark.usefixtures("trusted")
def test_good_file_arrives_over_cut_connections(file: File, secure: Server, tmp_path: Path) -> None:
    secure.answers["/a"] = lambda handler: send_range(handler, CONTENT, 100_000)
    assert download(file, tmp_path / "a").read_bytes() == CONTENT
    assert len(secure.requests) == 4


def test_certificate_that_nobody_vouches_for_is_refused(file: File, secure: Server, tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="certificate verify failed"):
        download(file, tmp_path / "a")
    assert secure.requests == []


@pytest.mark.usefixtures("trusted")
def test_redirection_down_to_plain_http_is_not_followed(file: File, secure: Server, tmp_path: Path) -> None:
    secure.answers["/a"] = lambda handler: redirect(handler, file.url.replace("https:", "http:"))
    with pytest.raises(BrokenFile, match="is not an https address, and no other is followed"):
        download(file, tmp_path / "a")
    assert len(secure.requests) == 1


@pytest.mark.usefixtures("trusted")
def test_drops_end_at_the_deadline(file: File, secure: Server, tmp_path: Path) -> None:
    def drip(handler: object) -> None:
        send(handler, CONTENT[:1000], len(CONTENT))
        while not secure.enough.wait(0.02):
            handler.wfile.write(b"x")

    secure.answers["/a"] = drip
    with pytest.raises(BrokenFile, match=r"it was not finished within 0\.5 s"):
        download(file, tmp_path / "a", deadline=0.5)
    assert (tmp_path / "a.part").read_bytes()[:1000] == CONTENT[:1000]
    secure.answers["/a"] = lambda handler: send_range(handler, CONTENT, len(CONTENT))
    assert download(file, tmp_path / "a").read_bytes() == CONTENT, "what dripped was no part of it"


def test_silence_in_the_handshake_ends_by_either_wait(tmp_path: Path) -> None:
    """A server that takes the connection and never says a word of TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        mute = File("set/a", f"https://127.0.0.1:{listener.getsockname()[1]}/a", 1, "0" * 64)
        with pytest.raises(BrokenFile, match=r"no answer for 0\.2 s|timed out"):
            download(mute, tmp_path / "a", timeout=0.2, deadline=20)
        with pytest.raises(BrokenFile, match=r"it was not finished within 0\.2 s"):
            download(mute, tmp_path / "a", timeout=20, deadline=0.2)


@pytest.mark.parametrize("words", [b"HTTP/1.0 403 Forbidden\r\n\r\n", b"\0\0\0\0", b""])
def test_proxy_that_refuses_is_said(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: bytes
) -> None:
    with proxy(monkeypatch) as listener, ThreadPoolExecutor(1) as pool:

        def answer() -> bytes:
            with listener.accept()[0] as connection:
                asked = connection.recv(1000)
                connection.sendall(words)
                return asked

        asked = pool.submit(answer)
        with pytest.raises(BrokenFile, match=r"https://example\.org/a could not be fetched: "):
            download(File("set/a", "https://example.org/a", 1, "0" * 64), tmp_path / "a", timeout=0.5)
        assert asked.result(10).startswith(b"CONNECT example.org:443 HTTP/1.")


def test_proxy_that_drips_ends_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy(monkeypatch) as listener, ThreadPoolExecutor(1) as pool:

        def drip() -> None:
            with listener.accept()[0] as connection, suppress(OSError):
                connection.sendall(b"HTTP/1.0 200 ")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.02)

        pool.submit(drip)
        with pytest.raises(BrokenFile, match=r"it was not finished within 0\.3 s"):
            download(File("set/a", "https://example.org/a", 1, "0" * 64), tmp_path / "a", deadline=0.3)


@contextmanager
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """What listens where the environment says that a proxy is."""
    monkeypatch.delenv("no_proxy")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{listener.getsockname()[1]}")
        yield listener
