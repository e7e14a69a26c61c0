# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the sending side knows of its connections, and how fast each may send."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net import pool_tuner, tcp_stats
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_info import TcpInfo


class Link:
    def __init__(self, socket: str) -> None:
        self.socket, self.number = socket, 1  # by whose name the fake below knows it


def info(packets: int, rtt: float) -> TcpInfo:
    return TcpInfo(rtt, 0.04, 0, packets, 0, 0.0, 0.0, 0.0)


def test_the_round_trip_of_most_packets_counts_also_of_connections_that_went(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Link("one"), Link("two")
    looks = [  # which connections there are, and what the kernel says of them
        {"one": info(100, 0.06), "two": info(100, 0.1)},
        {"one": info(300, 0.08)},
        {"one": info(300, 0.04)},  # the queue is empty again, and nothing was sent meanwhile
        {"one": None},
    ]
    over = threading.Event()
    streams = SimpleNamespace(rtt=0.0, congestion="")

    def links() -> list[Link]:
        if len(looks) == 1:
            over.set()
        now = looks.pop(0)
        monkeypatch.setattr(tcp_stats, "read_tcp_info", now.get)
        return [link for link in (one, two) if link.socket in now]

    streams.links = links
    monkeypatch.setattr(pool_tuner, "LOOK_SECONDS", 0.0)
    pool_tuner.tune(streams, over, logging.getLogger().info, "none", lambda: 0)  # type: ignore[arg-type]
    assert streams.rtt == pytest.approx((100 * 0.06 + 100 * 0.1 + 200 * 0.08) / 400)


def test_each_connection_sends_no_more_than_the_limit_and_what_a_look_at_the_line_leaves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tuner = pool_tuner._Tuner(print, True, "")
    rates: dict[int, int] = {}
    monkeypatch.setattr(tuner, "_choice", SimpleNamespace(rates=rates, over=True))
    paced: list[tuple[str, int]] = []
    monkeypatch.setattr(pool_tuner, "pace", lambda socket, rate: paced.append((socket, rate)))
    one, two = Link("one"), Link("two")
    two.number = 2
    found = []
    for limit, eased in ((0, {}), (0, {2: 70}), (50, {2: 70}), (90, {2: 70}), (90, {}), (90, {}), (0, {})):
        rates.clear()
        rates.update(eased)
        tuner.look([one, two], {}, limit)
        found.append(paced.copy())
        paced.clear()
    assert found == [
        [],
        [("two", 70)],
        [("one", 50), ("two", 50)],
        [("one", 90), ("two", 70)],
        [("two", 90)],
        [],
        [("one", 0), ("two", 0)],
    ]
