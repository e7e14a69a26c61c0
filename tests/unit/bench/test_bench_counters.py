# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark reads the kernel's counters right."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.bench.counters import Wire, parse_net_dev, parse_private
from ansible_collections.longhaul.fleet.tests.bench.machine import sentence, version_in

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0
  eth1: 1000000    1000    0    0    0     0          0         0  2000000    3000    0    0    0     0       0          0
 eth11:       7       7    0    0    0     0          0         0        7       7    0    0    0     0       0          0
"""  # noqa: E501 - as the kernel writes it
ROLLUP = """\
55d0-7ffd ---p 00000000 00:00 0                          [rollup]
Rss:                1668 kB
Pss:                 260 kB
Shared_Clean:       1516 kB
Shared_Dirty:          8 kB
Private_Clean:        40 kB
Private_Dirty:       112 kB
Private_Hugetlb:       4 kB
"""
MACHINE = {
    "date": "2026-11-21 20:00 UTC",
    "processor": "Fast",
    "cores": 2,
    "memory_gib": 24,
    "kernel": "6.1",
    "system": "Debian",
    "load": 0.1,
    "nice": 0,
    "versions": {"rsync": "3.2.7"},
}


def test_both_directions_of_one_interface_are_counted() -> None:
    assert parse_net_dev(NET_DEV, "eth1") == Wire(3_000_000, 4000)
    with pytest.raises(KeyError):
        parse_net_dev(NET_DEV, "eth0")


def test_headers_are_no_payload() -> None:
    carried = Wire(3_000_000, 4000).since(Wire(1_000_000, 3000))
    assert carried == Wire(2_000_000, 1000)
    assert carried.payload == 2_000_000 - 66_000


def test_own_pages_are_the_private_ones() -> None:
    assert parse_private(ROLLUP) == (40 + 112) << 10
    assert parse_private("") == 0
    assert parse_private(Path("/proc/self/smaps_rollup").read_text()) > 1 << 20


@pytest.mark.parametrize(
    "said, version",
    [
        ("rsync  version 3.2.7  protocol version 31\n", "3.2.7"),
        ("OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19", "9.2p1"),
        ("tar (GNU tar) 1.34", "1.34"),
        ("nothing of the kind", ""),
    ],
)
def test_version_in(said: str, version: str) -> None:
    assert version_in(said) == version


def test_the_machine_is_described_with_what_disturbed_it() -> None:
    quiet = sentence(MACHINE)
    assert "2 cores (Fast), 24 GiB, Debian, Linux 6.1; rsync 3.2.7" in quiet and "was idle" in quiet
    assert "nice" not in quiet
    busy = sentence({**MACHINE, "load": 3.2, "nice": 19})
    assert "Other work ran too (load 3.2)" in busy and "at nice 19" in busy
