# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both ends of a connection inside TLS, over a pair of sockets."""

from __future__ import annotations

import hashlib
import os
import random
import socket
import ssl
import threading
import time
from types import SimpleNamespace
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import tls
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.data_connection import (
    ConnectionLost,
    DataConnection,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer import credentials

CONTENTS = os.urandom(3 * tls.TLS_PIECE + 17)


class Ends(SimpleNamespace):
    """Both ends, and the sockets below them."""

    sends: tls.TlsConnection
    takes: tls.TlsConnection


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

    met: list[tls.TlsConnection] = []
    serving = threading.Thread(target=lambda: met.append(tls.wrap(*engine("serve", "drive"), True, here)))
    serving.start()
    sends = tls.wrap(*engine("drive", "serve"), False, there)
    serving.join()
    yield Ends(sends=sends, takes=met[0])
    here.close()
    there.close()


def test_contents_arrive_in_pieces_of_any_size(ends: Ends) -> None:
    sending = threading.Thread(target=ends.sends.sendall, args=(CONTENTS,))
    sending.start()
    taken, sizes = b"", random.Random(2)
    while len(taken) < len(CONTENTS):
        taken += ends.takes.recv(min(sizes.choice([1, 5, 100_000, 2 << 20]), len(CONTENTS) - len(taken)))
    sending.join()
    assert taken == CONTENTS
    ends.sends.close()
    assert ends.takes.is_ready is False and ends.takes.recv(1) == b"" and ends.takes.is_ready


def test_an_end_that_may_not_wait_sends_the_rest_later(ends: Ends) -> None:
    ends.sends.stop_waiting()
    ends.takes.stop_waiting()
    with pytest.raises(BlockingIOError):
        ends.takes.recv(1)
    left, taken, waits = memoryview(CONTENTS), b"", 0
    while left:
        try:
            left = left[ends.sends.send(left) :]
        except BlockingIOError:
            waits += 1
            try:
                taken += ends.takes.recv(1 << 20)
            except BlockingIOError:
                continue
    ends.sends.close()
    while piece := ends.takes.recv(1 << 20):
        taken += piece
    assert waits and hashlib.sha256(taken).digest() == hashlib.sha256(CONTENTS).digest()


def test_what_is_left_of_a_record_does_not_wait_for_the_network(ends: Ends) -> None:
    ends.sends.sendall(b"a record of 22 bytes..")
    assert ends.takes.recv(2) == b"a " and ends.takes.is_ready
    assert ends.takes.recv(100) == b"record of 22 bytes.." and not ends.takes.is_ready


def test_a_peer_that_says_a_byte_now_and_then_is_not_waited_for() -> None:
    here, there = socket.socketpair()
    here.settimeout(0.5)
    over = threading.Event()

    def drip() -> None:
        there.sendall(b"\x16\x03\x01\x40\x00")  # the head of a long record
        while not over.wait(0.1):
            there.sendall(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    begun = time.monotonic()
    with pytest.raises(socket.timeout):
        tls.TlsConnection(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), True, here)
    over.set()
    dripping.join()
    here.close()
    there.close()
    assert time.monotonic() - begun < 10


def test_a_damaged_record_ends_a_data_connection(ends: Ends) -> None:
    link = DataConnection(ends.takes.socket, 5, None, drives=False, tls=ends.takes)
    ends.sends.socket.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
    with pytest.raises(ConnectionLost, match="lost while receiving"):
        link.receive(1)
