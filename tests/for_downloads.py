"""A server on this machine that is good, or bad in the way it is told to be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


def send(handler: BaseHTTPRequestHandler, body: bytes, length: int | None, **headers: str) -> None:
    """A body, of the length that is claimed or of none."""
    handler.send_response(200)
    if length is not None:
        headers["Content-Length"] = str(length)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def send_range(handler: BaseHTTPRequestHandler, content: bytes, most: int, etag: str = '"one"') -> None:
    """What was asked for of the content, as a good server gives it, but no more than `most` bytes on a connection."""
    asked = handler.headers.get("Range")
    start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
    if handler.headers.get("If-Range", etag) != etag:
        start = 0
    handler.send_response(206 if start else 200)
    handler.send_header("ETag", etag)
    handler.send_header("Content-Length", str(len(content) - start))
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    handler.end_headers()
    handler.wfile.write(content[start : start + most])


def redirect(handler: BaseHTTPRequestHandler, place: str, code: int = 302) -> None:
    handler.send_response(code)
    handler.send_header("Location", place)
    handler.end_headers()


class Server:
    """Gives each path the answer set for it; `enough` releases those that hang."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.enough = threading.Event()
        self.requests: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(dict(self.headers))
                answer = outer.answers.get(self.path)
                if answer is None:
                    self.send_error(404)
                    return
                with suppress(OSError):  # who asked may have hung up
                    answer(self)

            def log_message(self, *parts: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *parts: object) -> None:
                pass

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def ranges(self) -> list[str | None]:
        """The range that each request asked for."""
        return [request.get("Range") for request in self.requests]

    def close(self) -> None:
        self.enough.set()
        self.http.shutdown()
        self.http.server_close()
