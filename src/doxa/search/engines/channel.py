"""Messages between a search and a worker's process: neither end of them can make the other wait for ever."""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from typing import Any

LENGTH = struct.Struct("!Q")  # before each message
CHUNK = 1 << 18  # bytes read at once


def encode(message: Any) -> bytes:
    """A message as bytes."""
    return pickle.dumps(message)


def decode(content: bytes | bytearray) -> Any:
    """The message again; its sender is a process that was started by this one, or that started it."""
    return pickle.loads(content)


class WorkerChannel:
    """The worker's end: it waits for what it is told, and several threads may send."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.lock = connection, threading.Lock()

    def recv(self) -> Any:
        """The next message; EOFError when there will be none."""
        return decode(self.recv_bytes())

    def recv_bytes(self) -> bytearray:
        """The next message as bytes."""
        return self._read(*LENGTH.unpack(self._read(LENGTH.size)))

    def send(self, message: Any) -> None:
        """Send a message, whole; OSError when nobody listens."""
        self.send_bytes(encode(message))

    def send_bytes(self, content: bytes) -> None:
        """Send a message that is bytes."""
        with self.lock:
            self.socket.sendall(LENGTH.pack(len(content)) + content)

    def _read(self, length: int) -> bytearray:
        content = bytearray(length)
        view = memoryview(content)
        while view:
            count = self.socket.recv_into(view)
            if not count:
                raise EOFError
            view = view[count:]
        return content


class LeaderChannel:
    """The search's end: it never waits. What cannot be sent yet is kept, and what has arrived in part stays."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.outgoing: deque[memoryview] = deque()
        self.incoming = bytearray()

    @property
    def unsent(self) -> int:
        """Bytes that are still to be sent."""
        return sum(len(part) for part in self.outgoing)

    def post(self, content: bytes) -> None:
        """Send a message, now or as the worker reads."""
        self.outgoing += (memoryview(LENGTH.pack(len(content))), memoryview(content))
        self.flush()

    def flush(self) -> None:
        """Send what the worker has room for; who is gone is found out by reading."""
        with suppress(BlockingIOError):
            while self.outgoing:
                try:
                    count = self.socket.send(self.outgoing[0])
                except (BrokenPipeError, ConnectionError):
                    self.outgoing.clear()
                    return
                rest = self.outgoing[0][count:]
                if rest:
                    self.outgoing[0] = rest
                else:
                    self.outgoing.popleft()

    def collect(self) -> tuple[list[bytes], bool]:
        """What has arrived, and whether more may come."""
        is_open = True
        with suppress(BlockingIOError):
            while is_open:
                try:
                    chunk = self.socket.recv(CHUNK)
                except ConnectionError:
                    chunk = b""
                self.incoming += chunk
                is_open = bool(chunk)
        return self._whole_messages(), is_open

    def _whole_messages(self) -> list[bytes]:
        messages, start = list[bytes](), 0
        while len(self.incoming) >= start + LENGTH.size:
            end = start + LENGTH.size + LENGTH.unpack_from(self.incoming, start)[0]
            if len(self.incoming) < end:
                break
            messages.append(bytes(self.incoming[start + LENGTH.size : end]))
            start = end
        del self.incoming[:start]
        return messages

    def close(self) -> None:
        """Hang up."""
        self.outgoing.clear()
        self.socket.close()
