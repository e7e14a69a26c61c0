# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the first connection is tried, with a peer that cannot be reached; how much a new one takes at once."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import PeerUnreachable
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import connect, tcp_info
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_info import TcpInfo

REFUSED, NO_ROUTE = (OSError(number, os.strerror(number)) for number in (errno.ECONNREFUSED, errno.EHOSTUNREACH))


class Wire:
    """Fails as it is told to; then the peer is there."""

    def __init__(self, failures: list[OSError]) -> None:
        self.failures, self.tried = failures, 0

    def connect(self, *_where: Any) -> str:
        """Try."""
        self.tried += 1
        if self.tried <= len(self.failures):
            raise self.failures[self.tried - 1]
        return "connected"


@pytest.fixture(name="first")
def first_fixture(monkeypatch):
    """Make the first connection over such a wire, and return its outcome and how often it was tried."""
    monkeypatch.setattr(connect, "_RETRY_SECONDS", 0)

    def first(failures: list[OSError]) -> tuple[Any, int]:
        wire = Wire(failures)
        monkeypatch.setattr(connect, "connect", wire.connect)
        context: Any = SimpleNamespace(
            peer={"address": "192.0.2.1", "port": 1, "patience": 3600}, stop=threading.Event()
        )
        parameters: Any = None
        try:
            return connect.connect_first(context, parameters), wire.tried
        except PeerUnreachable as error:
            return error, wire.tried

    return first


def test_a_port_that_refuses_is_given_up_at_once(first):
    """The peer listens before: it is a firewall that refuses, and the other direction is to be tried soon."""
    error, tried = first([REFUSED] * 1000)
    assert tried == connect._REFUSALS
    assert "192.0.2.1 did not take the connection to port 1" in str(error) and "Connection refused" in str(error)


def test_what_may_pass_is_waited_for(first):
    assert first([REFUSED, REFUSED, REFUSED, NO_ROUTE] * 5) == ("connected", 21)


@pytest.mark.parametrize(("rtt", "makes_room"), [(0.1, True), (0.009, False), (None, False)])
def test_room_is_made_where_the_round_trip_is_long(monkeypatch, rtt, makes_room):
    said = None if rtt is None else TcpInfo(rtt, rtt, 0, 0, 0, 0.0, 0.0, 0.0)
    monkeypatch.setattr(tcp_info, "read_tcp_info", lambda _connection: said)
    context: Any = SimpleNamespace(secrets={"exchange": "x"}, settings={"timeout": 60}, part="drive")
    opened: list[socket.socket] = []
    monkeypatch.setattr(connect, "open_window", opened.append)
    parameters = connect.ConnectionParameters(context, encrypts=False)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        assert parameters.wrap(one) is one
        assert opened == ([one] if makes_room else [])


@pytest.mark.skipif(sys.platform != "linux", reason="cannot run here: only Linux makes room this way")
def test_a_new_connection_has_room_for_much_and_still_wakes_for_a_byte():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        before = one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        connect.open_window(one)
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > max(before, 1 << 20)
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
