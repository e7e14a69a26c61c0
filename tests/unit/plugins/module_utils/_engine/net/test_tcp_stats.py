# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What connections met is added up, over real sockets of this host."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_info import congestion_of
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_stats import (
    add_up,
    sample_connection,
    sample_descriptor,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cannot run here: needs Linux")


class Pair:
    def __init__(self) -> None:
        with socket.socket() as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)  # as small as the kernel makes it
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            self.sender = socket.create_connection(listening.getsockname())
            self.receiver = listening.accept()[0]

    def pass_slowly(self, count: int) -> None:
        """Send so much to a receiver that takes its time."""
        sending = threading.Thread(target=self.sender.sendall, args=(bytes(count),))
        sending.start()
        left = count
        while left:
            time.sleep(0.01)
            left -= len(self.receiver.recv(min(left, 16384)))
        sending.join()

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


@pytest.fixture(name="pairs")
def _pairs():
    made = [Pair() for _one in range(3)]
    yield made
    for pair in made:
        pair.close()


def test_those_that_ended_those_that_did_not_and_the_channel_count(pairs):
    for pair in pairs:
        pair.pass_slowly(500_000)
    first = sample_connection(pairs[0].sender)
    assert first
    single = add_up([first])
    assert single and single["packets"] > 0 and single["window_limited"] > 0.1, single
    assert single["window_limited"] <= single["busy"] and 0 < single["min_rtt"] <= single["rtt"]
    assert add_up([first], rtt=0.25) == {**single, "rtt": 0.25}
    assert single["congestion"] == [congestion_of(pairs[0].sender)] and single["congestion"][0] in single["offered"]
    pairs[0].close()
    assert sample_connection(pairs[0].sender) is None  # of one that is closed nothing is known
    second, channel = sample_connection(pairs[1].sender), sample_descriptor(pairs[2].sender.fileno())
    assert second and channel
    whole = add_up([first, second, channel])
    assert whole and whole["packets"] > 2 * single["packets"] and whole["busy"] > 2 * single["busy"]
    os.fstat(pairs[2].sender.fileno())  # it is still open


def test_without_connections_nothing_is_said():
    reader, writer = os.pipe()
    assert sample_descriptor(writer) is None
    assert sample_descriptor(-1) is None
    assert add_up([]) is None
    os.close(reader)
    os.close(writer)
