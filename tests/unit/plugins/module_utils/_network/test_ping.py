# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ping says, and what it means."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import search_path
from ansible_collections.longhaul.fleet.plugins.module_utils._network.ping import (
    PingReply,
    evaluate_ping,
    find_ping,
    next_sizes,
    parse_ping,
    ping_argv,
)

GOOD = "3 packets transmitted, 3 received, 0% packet loss, time 602ms\n"
LOST = "3 packets transmitted, 0 received, 100% packet loss, time 602ms\n"
IPUTILS = "#!/bin/sh\necho 'Usage: ping [-aAbB] [-M pmtudisc] destination' >&2; exit 2\n"
BUSYBOX = "#!/bin/sh\necho 'Usage: ping [-c COUNT] HOST' >&2; exit 1\n"


@pytest.mark.parametrize(
    "text, answer",
    [
        (GOOD, PingReply(3)),
        ("3 packets transmitted, 2 packets received, 33.3% packet loss", PingReply(2)),  # FreeBSD
        (f"{LOST}ping: local error: message too long, mtu=1500\n", PingReply(0, True, 1500)),
        (f"{LOST}ping: local error: Message too long, mtu: 1500\n", PingReply(0, True, 0)),
        (f"{LOST}ping: sendto: Message too long\n", PingReply(0, True, 0)),
        (
            f"From 10.0.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1400)\n{LOST}",
            PingReply(0, False, 0, "10.0.0.1", 1400),
        ),
        (
            f"From fd00::1 icmp_seq=1 Packet too big: mtu=1400\n{LOST}",
            PingReply(0, False, 0, "fd00::1", 1400),
        ),
        (
            "36 bytes from 10.0.0.1: frag needed and DF set (MTU 1400)\n3 packets transmitted, 0 packets received",
            PingReply(0, False, 0, "10.0.0.1", 1400),
        ),
        ("ping: unknown host", PingReply(0)),
    ],
)
def test_what_ping_says(text, answer):
    assert parse_ping(text)._replace(said="") == answer


def test_the_size_counts_the_headers():
    assert ping_argv("10.0.0.2", 9000, 3)[-3:] == ["-s", "8972", "10.0.0.2"]
    assert ping_argv("fd00::2", 9000, 3)[-3:] == ["-s", "8952", "fd00::2"]
    assert "-D" in ping_argv("10.0.0.2", 9000, 3, "FreeBSD") and "-M" not in ping_argv("10.0.0.2", 9000, 3, "FreeBSD")


@pytest.mark.parametrize(
    "full, small, link_mtu, verdict, said",
    [
        (PingReply(1), None, 9000, "passed", "packets of 9000 bytes pass"),
        (
            PingReply(0, router="10.0.0.1", router_mtu=1400),
            PingReply(3),
            9000,
            "router",
            "the router 10.0.0.1 passes no more",
        ),
        (PingReply(0, True, 1500), PingReply(3), 1500, "local", "the MTU of eth0 is 1500"),
        (PingReply(0, True, 1500), PingReply(3), 9000, "router", "has learned that the path passes no more than 1500"),
        (PingReply(0), PingReply(3), 9000, "black_hole", "a layer-2 black hole"),
        (
            PingReply(0),
            PingReply(0, said="Destination Host Unreachable"),
            9000,
            "unreachable",
            "Destination Host Unreachable",
        ),
    ],
)
def test_verdicts(full, small, link_mtu, verdict, said):
    found, message = evaluate_ping(9000, full, small, "eth0", link_mtu)
    assert found == verdict and said in message


@pytest.mark.parametrize("largest", [85, 576, 1279, 1500, 1501, 1514, 4352, 5000, 8999])
def test_the_search_ends_at_the_largest_in_a_few_rounds(largest):
    passes, fails, rounds = 84, 9000, 0
    while True:
        sizes = next_sizes(passes, fails, rounds > 0)
        if not sizes:
            break
        assert all(passes < size < fails for size in sizes) and len(sizes) <= 20
        passes = max([passes, *(size for size in sizes if size <= largest)])
        fails = min([fails, *(size for size in sizes if size > largest)])
        rounds += 1
    assert passes == largest and rounds <= 5
    assert rounds <= 2 or largest not in (576, 1500, 4352)


@pytest.mark.parametrize("manager, package", [("apt-get", "iputils-ping"), ("dnf", "iputils")])
@pytest.mark.parametrize("ping, usable", [(IPUTILS, True), (BUSYBOX, False), (None, False)])
def test_what_is_there_is_looked_at(tmp_path, monkeypatch, ping, usable, manager, package):
    for name, text in (("ping", ping), (manager, "#!/bin/sh\n")):
        if text is not None:
            (tmp_path / name).write_text(text)
            os.chmod(tmp_path / name, 0o755)
    monkeypatch.setattr(search_path, "_SYSTEM_FOLDERS", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ping("Linux") == (usable, package)
