# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many data connections there are before the conversation has begun, and what becomes of them."""

from __future__ import annotations

import contextlib
import select
import threading
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import early_connections
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.connect import (
    Connection,
    ConnectionParameters,
    Listener,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.early_connections import EarlyConnections
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_info import LONG_RTT
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings

LONG, SHORT = 0.1, 0.0002  # seconds


class Peer:
    """One that listens at loopback; ``meet`` makes the early connections to it, over a line of a round trip."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arrived: list[Connection] = []
        self._folder, self._monkeypatch = str(folder), monkeypatch
        self.plan: Any = {**settings("stream", encrypt=False), "streams_max": 16}
        serving = Context("dest", "serve", b"/", self.plan, self._folder, serve={"address": "127.0.0.1"})
        serving.secrets = {"exchange": "a secret"}
        self.listener = Listener(serving, ConnectionParameters(serving), self.arrived.append)

    def meet(self, round_trip: float, count: int = 2, gate: threading.Event | None = None) -> EarlyConnections:
        """Begin; the line is seen when ``gate`` is open."""

        def look(_socket: object) -> bool:
            if gate is not None:
                gate.wait(10)
            return round_trip >= LONG_RTT

        self._monkeypatch.setattr(early_connections, "is_long", look)
        driving = Context("source", "drive", b"/", self.plan, self._folder)
        driving.secrets = {"exchange": "a secret"}
        driving.peer = {"address": self.listener.address, "port": self.listener.port}
        return EarlyConnections(driving, ConnectionParameters(driving), count)

    def have(self, count: int) -> None:
        """Wait until so many are here, and look that no more come."""
        wait_for(lambda: len(self.arrived) == count, seconds=10)
        assert sorted(one.number for one in self.arrived) == list(range(1, count + 1))

    def close(self) -> None:
        """Stop listening."""
        self.listener.close()
        for one in self.arrived:
            one.socket.close()


@pytest.fixture(name="peer")
def _peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    with contextlib.closing(Peer(tmp_path, monkeypatch)) as peer:
        yield peer


@pytest.mark.parametrize(
    ("round_trip", "most", "expected"), [(SHORT, 16, 2), (LONG, 16, 4), (LONG, 3, 3), (LONG, 2, 2), (LONG, 1, 2)]
)
def test_a_long_line_is_begun_with_more_connections_if_the_transfer_may_have_them(
    peer: Peer, round_trip: float, most: int, expected: int
) -> None:
    peer.plan["streams_max"] = most
    early = peer.meet(round_trip)
    peer.have(expected)
    assert early.settle() == expected
    taken = [early.take(number) for number in range(1, expected + 1)]
    assert [one.number if one else None for one in taken] == list(range(1, expected + 1))
    assert early.take(1) is None  # there was only one
    for one in taken:
        if one is not None:
            one.socket.close()
    early.close()


def test_more_than_four_that_an_earlier_transfer_found_remain(peer: Peer) -> None:
    early = peer.meet(LONG, count=6)
    peer.have(6)
    assert early.settle() == 6
    early.close()


def test_what_is_seen_of_the_line_too_late_begins_no_connection(peer: Peer) -> None:
    gate = threading.Event()
    early = peer.meet(LONG, gate=gate)
    assert early.settle() == 2  # the conversation begins, and takes so many
    gate.set()
    peer.have(2)
    early.close()


def test_those_that_nobody_took_are_closed(peer: Peer) -> None:
    early = peer.meet(LONG)
    peer.have(4)
    early.close()
    for one in peer.arrived:
        assert select.select([one.socket], [], [], 10)[0] and not one.socket.recv(1)


def test_one_that_cannot_be_made_is_not_waited_for(peer: Peer) -> None:
    peer.listener.close()
    early = peer.meet(LONG)
    assert early.take(1) is None and early.take(2) is None
    early.close()
