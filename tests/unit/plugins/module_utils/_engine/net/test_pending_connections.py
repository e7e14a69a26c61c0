# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who connects and keeps silent keeps nobody out."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import connect as module
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import pending_connections
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.connect import (
    ConnectionParameters,
    Listener,
    connect,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.pending_connections import (
    MOST,
    PendingConnections,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.handshake import OFFER_BYTES, encode_hello
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings


def test_the_oldest_silent_one_goes():
    held_ones = PendingConnections(most=3)
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _number in range(5)]
        for pair in pairs:
            stack.enter_context(pair[0])
            stack.enter_context(pair[1])
            pair[1].settimeout(5)
        held = [held_ones.add(mine) for mine, _theirs in pairs[:3]]
        for stranger in held:
            stack.enter_context(held_ones.hold(stranger))
        held[0].is_silent = False
        stack.enter_context(held_ones.hold(held_ones.add(pairs[3][0])))
        assert pairs[1][1].recv(1) == b""  # the oldest that had said nothing
        held[2].is_silent = False
        stack.enter_context(held_ones.hold(held_ones.add(pairs[4][0])))
        assert pairs[3][1].recv(1) == b""
        for mine, theirs in (pairs[0], pairs[2], pairs[4]):
            mine.sendall(b"x")
            assert theirs.recv(1) == b"x"


def test_who_has_left_does_not_count():
    held_ones = PendingConnections(most=1)
    first, other = socket.socketpair()
    with first, other:
        for _time in range(3):
            with held_ones.hold(held_ones.add(first)):
                pass
        first.sendall(b"x")
        assert other.recv(1) == b"x"


@pytest.fixture(name="listening")
def _listening(tmp_path):
    """Return a function that listens at loopback with this end's parameters, and the connections that arrived."""
    with contextlib.ExitStack() as stack:

        def listen(log=None):
            plan = settings("stream", encrypt=False)
            secrets = {"exchange": "a secret"}
            serving = Context("dest", "serve", b"/", plan, str(tmp_path), serve={"address": "127.0.0.1"})
            serving.secrets, serving.log = secrets, log or serving.log
            arrived = []
            listener = Listener(serving, ConnectionParameters(serving), arrived.append)
            stack.callback(lambda: [one.socket.close() for one in arrived])
            stack.callback(listener.close)
            driving = Context("source", "drive", b"/", plan, str(tmp_path), secrets=secrets)
            return listener, ConnectionParameters(driving), arrived

        yield listen


def test_silent_connections_do_not_keep_the_peer_out(listening):
    listener, parameters, arrived = listening()
    with contextlib.ExitStack() as stack:
        for _number in range(MOST + 8):
            stack.enter_context(socket.create_connection((listener.address, listener.port)))
        begun = time.monotonic()
        made = connect(parameters, listener.address, listener.port, 0)
        stack.enter_context(made.socket)
        assert time.monotonic() - begun < module.HANDSHAKE_SECONDS / 2
        wait_for(lambda: arrived, seconds=5)


def test_strangers_do_not_fill_the_log(listening, monkeypatch):
    monkeypatch.setattr(pending_connections, "_COMPLAINTS", 3)
    lines = []
    listener, _parameters, _arrived = listening(lines.append)
    for _number in range(10):
        with socket.create_connection((listener.address, listener.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
    wait_for(lambda: listener.complaints.count == 10, seconds=20)
    assert len(lines) == 3 and lines[-1].endswith("what comes after this is not logged")


def test_a_byte_now_and_then_holds_a_place_no_longer_than_silence(listening, monkeypatch):
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.3)
    lines = []
    listener, _parameters, _arrived = listening(lines.append)
    with socket.create_connection((listener.address, listener.port)) as stranger, contextlib.suppress(OSError):
        for byte in encode_hello(1) + OFFER_BYTES * b"x":
            stranger.sendall(bytes([byte]))
            time.sleep(0.05)
            if lines:
                break
    wait_for(lambda: lines, seconds=5)
    assert "took too long to prove who it is" in lines[0] or "timed out" in lines[0]
