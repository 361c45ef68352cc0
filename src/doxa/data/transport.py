"""An answer from a server that is trusted with nothing: https alone, few redirections, and an end to every wait for it.

Before there is a server its name is looked up, for as long as the resolver of the system takes (resolv.conf: timeout
and attempts): no limit of ours can end that, and the deadline is looked at once the resolver has answered.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import string
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

REDIRECTIONS = 5  # followed, each to https again
REDIRECTING = (301, 302, 303, 307, 308)
BROKEN = (ConnectionResetError, BrokenPipeError, http.client.BadStatusLine)  # before the answer had begun
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class NotSent(Exception):
    """An answer that did not come, or cannot be used; `status` is that of the server, where it gave one."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


class CutShort(NotSent):
    """A connection that ended too early: another one may bring the rest."""


class Deadline:
    """A moment at which the connection is ended, by whatever drops it is kept alive."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        # No wait for a thread can be longer, and nobody will wait for that long.
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._shut_down)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._hold(None)

    def remaining(self) -> float:
        """The seconds that are left; NotSent, where there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise NotSent(f"it was not finished within {self.seconds:g} s")
        return left

    def watch(self, connection: http.client.HTTPConnection) -> None:
        """Have the socket of this connection at hand from its first moment, before a proxy or TLS speak on it."""
        watched: Any = connection
        connect = watched._create_connection

        def connect_and_hold(*arguments: Any, **options: Any) -> socket.socket:
            connected: socket.socket = connect(*arguments, **options)
            self._hold(connected.dup())  # one that stays what it is when TLS takes the first over
            return connected

        watched._create_connection = connect_and_hold

    def _hold(self, connected: socket.socket | None) -> None:
        with self._lock:
            previous, self._socket = self._socket, connected
        if previous is not None:
            previous.close()
        if time.monotonic() >= self._end:
            self._shut_down()

    def _shut_down(self) -> None:
        with self._lock, suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


@contextmanager
def opened(
    url: str, headers: Mapping[str, str], timeout: float, deadline: Deadline, allow_loopback_http: bool = False
) -> Iterator[http.client.HTTPResponse]:
    """The answer of a server, after redirections; NotSent where it is none to be had, or no good one.

    timeout: the seconds to wait for an answer or the next bytes;  allow_loopback_http: for tests, of this machine alone
    """
    opener = _opener(deadline, allow_loopback_http)
    for _ in range(1 + REDIRECTIONS):
        require_safe(url, allow_loopback_http)
        answer = _ask(opener, url, headers, timeout, deadline)
        if isinstance(answer, str):
            url = answer
            continue
        with answer:
            yield answer
        return
    raise NotSent(f"there are more than {REDIRECTIONS} redirections")


def require_safe(url: str, allow_loopback_http: bool = False) -> None:
    """Refuse an address that is not https, where others could read and change what is sent."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise NotSent(f"{url!r} is no address ({error})") from None
    is_loopback = allow_loopback_http and parts.scheme == "http" and host in LOOPBACK
    if not host or (parts.scheme != "https" and not is_loopback):
        raise NotSent(f"{url!r} is not an https address, and no other is followed")


def read(response: http.client.HTTPResponse, most: int, timeout: float, deadline: Deadline) -> bytes:
    """What has come of a body, at most so many bytes; CutShort where the connection ended."""
    try:
        block = response.read1(most)
    except TimeoutError:
        deadline.remaining()
        raise CutShort(_silent(timeout)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        deadline.remaining()
        raise CutShort(f"the connection broke: {_describe(error)}") from error
    deadline.remaining()  # what is read of a connection that was ended is no part of the file
    if not block:
        raise CutShort("the answer ended too early")
    return block[:most]


def _ask(
    opener: urllib.request.OpenerDirector, url: str, headers: Mapping[str, str], timeout: float, deadline: Deadline
) -> http.client.HTTPResponse | str:
    """The answer, or the address at which to ask instead."""
    try:
        request = urllib.request.Request(url, headers=dict(headers))
        patience = min(timeout, deadline.remaining(), threading.TIMEOUT_MAX)
        answer: http.client.HTTPResponse = opener.open(request, timeout=patience)
        return answer
    except urllib.error.HTTPError as error:
        with error:
            place = error.headers.get("Location") if error.code in REDIRECTING else None
            if not place:
                raise NotSent(f"the server answered {error.code} {error.reason}", error.code) from error
        try:
            # Headers are read as Latin-1, which gives the very bytes back that the server sent.
            quoted = urllib.parse.quote(place, safe=string.punctuation, encoding="iso-8859-1")
            return urllib.parse.urljoin(url, quoted)
        except ValueError as invalid:
            raise NotSent(f"the server names no address to go on to ({invalid})") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        deadline.remaining()
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, BROKEN):
            raise CutShort(f"the connection broke: {_describe(reason)}") from error
        raise NotSent(_silent(timeout) if isinstance(reason, TimeoutError) else _describe(reason)) from error


def _silent(timeout: float) -> str:
    return f"no answer for {timeout:g} s"


def _describe(error: object) -> str:
    return str(error) or type(error).__name__


def _opener(deadline: Deadline, allow_loopback_http: bool) -> urllib.request.OpenerDirector:
    """What opens https and nothing else: it has no hands for ftp, files or data, and follows no redirection itself."""
    opener = urllib.request.OpenerDirector()
    handlers: list[urllib.request.BaseHandler] = [_Https(deadline), urllib.request.ProxyHandler()]
    handlers += [urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor()]
    handlers += [urllib.request.UnknownHandler(), *([_Http(deadline)] if allow_loopback_http else [])]
    for handler in handlers:
        opener.add_handler(handler)
    return opener


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        connect: Any = self._connection
        return self.do_open(connect, request)

    def _connection(self, host: str, timeout: float) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(host, timeout=timeout, context=ssl.create_default_context())
        self._deadline.watch(connection)
        return connection


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        connect: Any = self._connection
        return self.do_open(connect, request)

    def _connection(self, host: str, timeout: float) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(host, timeout=timeout)
        self._deadline.watch(connection)
        return connection
