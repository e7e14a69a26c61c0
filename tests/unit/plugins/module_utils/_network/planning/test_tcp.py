# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TCP settings by the speed of a link and what a host has."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.tcp import (
    Tuning,
    fastest,
    plan_tcp,
    sysctl_file,
    tcp_settings,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import (
    as_host,
    host,
    link,
)

# Keys that the role never writes: the kernel's own values are right, or changing them does harm.
FORBIDDEN = (
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_tw_",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "rp_filter",
)
CURRENT = {
    "tcp_rmem": "4096\t131072\t6291456",
    "tcp_wmem": "4096 16384 4194304",
    "tcp_available_congestion_control": "reno cubic",
}


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


def test_the_speed_of_the_links_that_are_wanted_counts():
    facts = host(
        link("eth0", speed=1000), link("eth1", speed=40000), link("lo", kind="loopback", mtu=65536, speed=None)
    )
    there = as_host(facts)
    slow, problems = plan_tcp(there, {"eth0": 1500}, CURRENT, Tuning())
    assert problems == [] and "rmem_max = 67108864" in slow and "net.ipv4.tcp_mtu_probing" not in slow
    assert "net.ipv4.tcp_mtu_probing = 1" in plan_tcp(there, {"eth1": 9000}, CURRENT, Tuning())[0]
    # without any, all links
    assert "rmem_max = 536870912" in plan_tcp(there, {}, CURRENT, Tuning())[0]
    given, _problems = plan_tcp(there, {}, CURRENT, Tuning(speed=10000), "# top")
    assert given.startswith("# top\nnet.core.default_qdisc") and "rmem_max = 268435456" in given


def test_tcp_is_left_alone_on_other_systems():
    ((said),) = plan_tcp(as_host(host(link("em0"), system="FreeBSD")), {}, {}, Tuning())[1]
    assert "Set nic_tcp_tuning: false for this host" in said
