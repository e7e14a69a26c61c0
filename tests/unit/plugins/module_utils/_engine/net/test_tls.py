# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both ends of a connection inside TLS, over a pair of sockets."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import socket
import ssl
import threading
from types import SimpleNamespace
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import tls
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.control_channel import ChannelBroken
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.data_connection import (
    ConnectionLost,
    DataConnection,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer import credentials

CONTENTS = os.urandom(3 * tls.TLS_PIECE + 17)


class Ends(SimpleNamespace):
    """Both ends of one connection."""

    sends: tls.TlsSocket
    takes: tls.TlsSocket


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Two ends that have agreed on keys."""
    made = {part: credentials.certificate(part) for part in ("serve", "drive")}
    here, there = socket.socketpair()
    here.settimeout(20)
    there.settimeout(20)

    def engine(part: str, other: str) -> tuple[Any, str]:
        context = Context(side="dest", part=part, root=b"/", settings={}, folder="")
        key, certificate = made[part]
        context.secrets.update({tls.KEY: key, tls.CERTIFICATE: certificate, tls.PEER: made[other][1]})
        return tls.make(context), made[other][1]

    met: list[tls.TlsSocket] = []
    serving = threading.Thread(target=lambda: met.append(tls.wrap(*engine("serve", "drive"), True, here)))
    serving.start()
    sends = tls.wrap(*engine("drive", "serve"), False, there)
    serving.join()
    yield Ends(sends=sends, takes=met[0])
    sends.close()
    met[0].close()


def test_contents_arrive_in_pieces_of_any_size(ends: Ends) -> None:
    sending = threading.Thread(target=ends.sends.sendall, args=(CONTENTS,))
    sending.start()
    taken, sizes = b"", random.Random(2)
    while len(taken) < len(CONTENTS):
        taken += ends.takes.recv(min(sizes.choice([1, 5, 100_000, 2 << 20]), len(CONTENTS) - len(taken)))
    sending.join()
    assert taken == CONTENTS
    ends.sends.close()
    assert ends.takes.recv(1) == b""


def test_an_end_that_may_not_wait_sends_the_rest_later(ends: Ends) -> None:
    ends.sends.setblocking(False)
    ends.takes.setblocking(False)
    room = memoryview(bytearray(1 << 20))
    with pytest.raises(BlockingIOError):
        ends.takes.recv_into(room)
    left, taken, waits = memoryview(CONTENTS), b"", 0
    while left:
        try:
            left = left[ends.sends.send(left) :]
        except BlockingIOError:
            waits += 1
            try:
                taken += room[: ends.takes.recv_into(room)]
            except BlockingIOError:
                continue
    ends.sends.close()
    while count := ends.takes.recv_into(room):
        taken += room[:count]
    assert waits and hashlib.sha256(taken).digest() == hashlib.sha256(CONTENTS).digest()


class SmallLane:
    """A lane of a conversation that takes five bytes at a time, and all of whose messages are pieces of a text."""

    idle_pings = 0

    def __init__(self) -> None:
        self._room = bytearray(5)

    def get_buffer(self) -> memoryview:
        """Return the place for the next bytes."""
        return memoryview(self._room)

    def buffer_updated(self, count: int) -> Iterator[bytes]:
        """Yield the bytes that came."""
        yield bytes(self._room[:count])


def channel_of(ends: Ends, timeout: float) -> tls.TlsChannel:
    """Return a channel around ``takes``, with such a lane."""
    channel = tls.TlsChannel(ends.takes, timeout)
    lane: Any = SmallLane()
    channel.join(SimpleNamespace(lane=lambda *_arguments: lane))  # type: ignore[arg-type]  # it asks no more of one
    return channel


def test_the_rest_of_a_record_does_not_wait_for_the_network(ends: Ends) -> None:
    ends.sends.sendall(b"a record of 22 bytes..")
    taken: Any = channel_of(ends, 5).receive()
    assert b"".join(next(taken) for _piece in range(5)) == b"a record of 22 bytes.."


def drip(connection: socket.socket, head: bytes, over: threading.Event) -> None:
    """Send the head of a record, and then a byte now and then."""
    with contextlib.suppress(OSError):
        connection.sendall(head)
        while not over.wait(0.05):
            connection.sendall(b"x")


@contextlib.contextmanager
def dripping(connection: socket.socket, head: bytes = b"\x17\x03\x03\x40\x00") -> Iterator[None]:
    """Have a thread do that, within a block."""
    over = threading.Event()
    thread = threading.Thread(target=drip, args=(connection, head, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_peer_that_says_a_byte_now_and_then_is_not_waited_for() -> None:
    here, there = socket.socketpair()
    here.settimeout(0.3)
    with here, there, dripping(there, b"\x16\x03\x01\x40\x00"), pytest.raises(socket.timeout):
        tls.wrap(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), "", True, here)


def test_a_conversation_does_not_wait_for_a_record_that_never_ends(ends: Ends) -> None:
    channel = channel_of(ends, 0.3)
    with socket.socket(fileno=os.dup(ends.sends.fileno())) as below, dripping(below):
        with pytest.raises(ChannelBroken, match="nothing arrived from the peer"):
            next(channel.receive())


def test_a_data_connection_does_not_wait_for_the_rest_of_a_record(ends: Ends) -> None:
    link = DataConnection(ends.takes, 0.3, None, drives=False, encrypted=True)
    os.write(ends.sends.fileno(), b"\x17\x03\x03\x00\x20" + bytes(3))
    with pytest.raises(ConnectionLost, match="nothing went through"):
        link.receive_head()


def test_what_comes_after_the_end_is_never_taken_as_it_is(ends: Ends) -> None:
    link = DataConnection(ends.takes, 5, None, drives=False, encrypted=True)
    ends.sends.sendall(b"contents")
    link.abort()
    with contextlib.suppress(ConnectionLost):
        assert link.receive(8) == b"contents"


def test_a_damaged_record_ends_a_data_connection(ends: Ends) -> None:
    link = DataConnection(ends.takes, 5, None, drives=False, encrypted=True)
    os.write(ends.sends.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
    with pytest.raises(ConnectionLost, match="lost while receiving"):
        link.receive(1)
