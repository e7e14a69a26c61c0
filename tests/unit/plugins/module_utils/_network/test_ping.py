# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ping says, and what it means; and the settings of TCP."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network.ping import (
    Answer,
    judge,
    next_sizes,
    parse_ping,
    ping_argv,
    worst,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._network.tcp import (
    FORBIDDEN,
    fastest,
    sysctl_file,
    tcp_settings,
)

GOOD = "3 packets transmitted, 3 received, 0% packet loss, time 602ms\n"
LOST = "3 packets transmitted, 0 received, 100% packet loss, time 602ms\n"
CURRENT = {
    "tcp_rmem": "4096\t131072\t6291456",
    "tcp_wmem": "4096 16384 4194304",
    "tcp_available_congestion_control": "reno cubic",
}


@pytest.mark.parametrize(
    "text, answer",
    [
        (GOOD, Answer(3)),
        ("3 packets transmitted, 2 packets received, 33.3% packet loss", Answer(2)),  # FreeBSD
        (f"{LOST}ping: local error: message too long, mtu=1500\n", Answer(0, True, 1500)),
        (f"{LOST}ping: local error: Message too long, mtu: 1500\n", Answer(0, True, 0)),
        (f"{LOST}ping: sendto: Message too long\n", Answer(0, True, 0)),
        (
            f"From 10.0.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1400)\n{LOST}",
            Answer(0, False, 0, "10.0.0.1", 1400),
        ),
        (
            f"From fd00::1 icmp_seq=1 Packet too big: mtu=1400\n{LOST}",
            Answer(0, False, 0, "fd00::1", 1400),
        ),
        (
            "36 bytes from 10.0.0.1: frag needed and DF set (MTU 1400)\n3 packets transmitted, 0 packets received",
            Answer(0, False, 0, "10.0.0.1", 1400),
        ),
        ("ping: unknown host", Answer(0)),
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
        (Answer(1), None, 9000, "passed", "packets of 9000 bytes pass"),
        (
            Answer(0, router="10.0.0.1", router_mtu=1400),
            Answer(3),
            9000,
            "router",
            "the router 10.0.0.1 passes no more",
        ),
        (Answer(0, True, 1500), Answer(3), 1500, "local", "the MTU of eth0 is 1500"),
        (Answer(0, True, 1500), Answer(3), 9000, "router", "has learned that the path passes no more than 1500"),
        (Answer(0), Answer(3), 9000, "black_hole", "a layer-2 black hole"),
        (
            Answer(0),
            Answer(0, said="Destination Host Unreachable"),
            9000,
            "unreachable",
            "Destination Host Unreachable",
        ),
    ],
)
def test_verdicts(full, small, link_mtu, verdict, said):
    found, message = judge(9000, full, small, "eth0", link_mtu)
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


def test_only_what_did_not_pass_is_told():
    bad = {"from": "a", "to": "b", "passed": False, "message": "lost", "largest": 1500}
    assert worst([bad, {**bad, "passed": True}, {**bad, "largest": None}]) == [
        "a to b: lost. The largest that passes has 1500 bytes",
        "a to b: lost",
    ]


@pytest.mark.parametrize(
    "speed, largest, third",
    [
        (0, 67108864, 33554432),
        (1000, 67108864, 33554432),
        (10000, 268435456, 134217728),
        (25000, 268435456, 134217728),
        (40000, 536870912, 268435456),
        (100000, 536870912, 268435456),
    ],
)
def test_tcp_by_speed(speed, largest, third):
    settings, problems = tcp_settings(speed, 1500, CURRENT)
    assert problems == []
    assert settings["net.core.rmem_max"] == settings["net.core.wmem_max"] == str(largest)
    # the first two are the kernel's own
    assert settings["net.ipv4.tcp_rmem"] == f"4096 131072 {third}"
    assert settings["net.ipv4.tcp_wmem"] == f"4096 16384 {third}"
    assert "net.ipv4.tcp_mtu_probing" not in settings
    assert not [key for key in settings if any(word in key for word in FORBIDDEN)]


def test_tcp_with_jumbo_frames_and_bbr():
    settings, problems = tcp_settings(10000, 9000, {**CURRENT, "tcp_available_congestion_control": "cubic bbr"}, "bbr")
    assert problems == [] and settings["net.ipv4.tcp_mtu_probing"] == "1"
    assert settings["net.ipv4.tcp_congestion_control"] == "bbr"
    assert "modprobe tcp_bbr" in tcp_settings(10000, 9000, CURRENT, "bbr")[1][0]
    assert "net.core.default_qdisc" not in tcp_settings(10000, 9000, CURRENT, "", "")[0]
    assert "not as three numbers" in tcp_settings(10000, 9000, {})[1][0]


def test_a_larger_value_of_the_administrators_stays():
    assert tcp_settings(0, 1500, {**CURRENT, "tcp_rmem": "1 2 999999999"})[0]["net.ipv4.tcp_rmem"] == "1 2 999999999"


def test_the_file_and_the_speed():
    assert sysctl_file({"b": "1 2", "a": "3"}, "# top\n") == "# top\na = 3\nb = 1 2\n"
    assert fastest([None, 1000, 10000], 0) == 10000 and fastest([1000], 40000) == 40000 and fastest([None], 0) == 0
