"""Messages between a search and its workers: whole, in order, and without waiting for who does not read."""

from __future__ import annotations

import pickle
import socket
import threading

import pytest

from doxa.search.engines.channel import CHUNK, LENGTH, LeaderChannel, WorkerChannel

LARGE = bytes(range(256)) * (1 << 14)  # more than a socket holds


def ends() -> tuple[LeaderChannel, WorkerChannel]:
    ours, theirs = socket.socketpair()
    return LeaderChannel(ours), WorkerChannel(theirs)


def test_a_leader_does_not_wait_for_a_worker_that_does_not_read() -> None:
    leader, worker = ends()
    for message in (LARGE, b"", b"small"):
        leader.post(message)
    assert leader.unsent > len(LARGE) // 2
    received: list[bytearray] = []
    reader = threading.Thread(target=lambda: received.extend(worker.recv_bytes() for _ in range(3)))
    reader.start()
    while leader.unsent:
        leader.flush()
    reader.join()
    assert received == [LARGE, b"", b"small"]


def test_a_message_that_has_arrived_in_part_is_kept_until_the_rest_comes() -> None:
    ours, theirs = socket.socketpair()
    leader, content = LeaderChannel(ours), pickle.dumps(("answer", 1))
    stream = 2 * (LENGTH.pack(len(content)) + content)
    for cut in range(1, len(stream)):
        theirs.sendall(stream[:cut])
        first, is_open = leader.collect()
        assert is_open
        theirs.sendall(stream[cut:])
        assert first + leader.collect()[0] == [content, content]


def test_what_several_threads_send_does_not_mix() -> None:
    leader, worker = ends()
    senders = [
        threading.Thread(target=lambda k=k: [worker.send([k] * CHUNK) for _ in range(5)], daemon=True) for k in range(3)
    ]
    for sender in senders:
        sender.start()
    messages: list[bytes] = []
    while len(messages) < 15:
        messages += leader.collect()[0]
    for sender in senders:
        sender.join()
    assert sorted(pickle.loads(message)[0] for message in messages) == sorted([0, 1, 2] * 5)
    assert all(len(set(pickle.loads(message))) == 1 for message in messages)


def test_both_ends_notice_that_the_other_is_gone() -> None:
    leader, worker = ends()
    worker.send("last words")
    worker.socket.close()
    messages, is_open = leader.collect()
    assert [pickle.loads(message) for message in messages] == ["last words"]
    assert not is_open
    leader.post(LARGE)  # which nobody will read
    leader.flush()
    assert not leader.unsent
    leader, worker = ends()
    leader.close()
    with pytest.raises(EOFError):
        worker.recv()
    with pytest.raises(BrokenPipeError):
        worker.send("anyone?")
