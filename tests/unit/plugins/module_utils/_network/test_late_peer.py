# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A peer that comes up while its path is tested is no black hole; one that swallows large packets still is."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network import ping
from ansible_collections.longhaul.fleet.plugins.module_utils._network.facts import Route
from ansible_collections.longhaul.fleet.plugins.module_utils._network.link import parse_link
from ansible_collections.longhaul.fleet.plugins.module_utils._network.ping import PingReply
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import link

ROUTE = Route("lh0", "10.77.0.1", None)
LINK = parse_link(link("lh0", mtu=9000))


@pytest.fixture(name="path")
def _path(monkeypatch):
    """Put a path in ping's place: it answers from its ``late``-th call on, to packets of at most ``carries`` bytes."""

    def put(late: int, carries: int) -> None:
        calls = iter(range(1000))
        monkeypatch.setattr(ping, "check_ping", lambda system: None)
        monkeypatch.setattr(ping, "find_route", lambda address, system: ROUTE)
        monkeypatch.setattr(ping, "read_links", lambda system: {"lh0": LINK})
        monkeypatch.setattr(ping.time, "sleep", lambda seconds: None)

        def answer(_address: str, size: int, count: int, _system: str) -> PingReply:
            return PingReply(received=count if next(calls) >= late and size <= carries else 0)

        monkeypatch.setattr(ping, "_ping", answer)

    return put


@pytest.mark.parametrize("late", range(6))
def test_a_peer_that_comes_up_at_any_moment_passes(path, late):
    path(late, 9000)
    found = ping.test_path("10.77.0.2", None, 3, patience=60)
    assert (found.verdict, found.largest, found.received) == ("passed", 9000, 3)


@pytest.mark.parametrize("late", range(6))
@pytest.mark.parametrize("carries", [1500, 8999])
def test_one_that_carries_less_is_a_black_hole(path, late, carries):
    path(late, carries)
    found = ping.test_path("10.77.0.2", None, 3, patience=60)
    assert (found.verdict, found.largest, found.received) == ("black_hole", carries, 0)


def test_no_packet_is_larger_than_a_header_can_say(path, monkeypatch):
    path(0, 65535)
    monkeypatch.setattr(ping, "read_links", lambda system: {"lh0": parse_link(link("lh0", mtu=65536))})
    found = ping.test_path("10.77.0.1", None, 3, patience=60)
    assert (found.verdict, found.mtu, found.link_mtu) == ("passed", 65535, 65536)
