# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel says of a connection, over real sockets of this host."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import time
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import tcp_info
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cannot run here: needs Linux")


@pytest.fixture(name="ends")
def makes_ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sender = socket.create_connection(listening.getsockname())
        receiver = listening.accept()[0]
    yield sender, receiver
    sender.close()
    receiver.close()


def test_both_ends_are_told_what_passed(ends):
    sender, receiver = ends
    sender.sendall(bytes(50_000))
    left = 50_000
    while left:
        left -= len(receiver.recv(left))

    def acked() -> int:
        found = tcp_info.read_tcp_info(sender)
        return found.acked if found else 0

    wait_for(lambda: acked() >= 50_000, seconds=10)
    sent, received = tcp_info.read_tcp_info(sender), tcp_info.read_tcp_info(receiver)
    assert sent and received
    assert 0 < sent.min_rtt <= sent.rtt < 1 and sent.lost == received.lost == 0
    assert 0 < received.packets <= sent.packets


def test_the_layout_is_that_of_the_kernel():
    data = bytearray(256)
    for offset, value in (
        (68, 120_000),
        (72, 7000),
        (92, 7),
        (100, 3),
        (148, 100_000),
        (152, 1),
        (156, 1000),
        (224, 5),
    ):
        struct.pack_into("=I", data, offset, value)
    for offset, value in ((120, 1 << 40), (168, 9_000_000), (176, 5_000_000), (184, 250_000)):
        struct.pack_into("=Q", data, offset, value)
    assert tcp_info.parse_tcp_info(bytes(data)) == (0.12, 0.1, 1 << 40, 1000, 3, 9.0, 5.0, 0.25, 0.007, 1000, 3)
    struct.pack_into("=I", data, 152, 2000)  # it receives
    assert tcp_info.parse_tcp_info(bytes(data))[:5] == (7e-6, 0.1, 1 << 40, 2000, 5)
    assert tcp_info.parse_tcp_info(bytes(data))[-2:] == (1000, 3)  # what it sent counts for itself
    assert tcp_info.parse_tcp_info(bytes(data[:160]))[5:9] == (0.0, 0.0, 0.0, 0.0)  # an older kernel
    assert tcp_info.parse_tcp_info(bytes(data[:100])) is None


def test_a_closed_connection_says_nothing(ends):
    ends[0].close()
    assert tcp_info.read_tcp_info(ends[0]) is None
    assert tcp_info.congestion_of(ends[0]) == ""
    assert not tcp_info.set_congestion(ends[0], "reno")
    tcp_info.pace(ends[0], 1)


def test_a_congestion_control_is_set_for_one_connection(ends):
    sender, receiver = ends
    before = tcp_info.congestion_of(receiver)
    assert "reno" in tcp_info.offered_congestion()  # which the kernel always offers
    assert tcp_info.set_congestion(sender, "reno")
    assert tcp_info.congestion_of(sender) == "reno"
    assert tcp_info.congestion_of(receiver) == before
    assert not tcp_info.set_congestion(sender, "nosuchthing")
    assert tcp_info.congestion_of(sender) == "reno"


def test_what_is_paced_is_slow_until_it_is_not(ends):
    sender, receiver = ends
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    tcp_info.pace(sender, 1 << 20)

    def seconds(count: int) -> float:
        began, left = time.monotonic(), count
        sender.setblocking(False)
        while left:
            with contextlib.suppress(BlockingIOError):
                sender.send(bytes(1 << 16))
            left -= len(receiver.recv(left))
        return time.monotonic() - began

    assert seconds(1 << 20) > 0.5
    tcp_info.pace(sender, 0)
    assert seconds(1 << 20) < 0.5
