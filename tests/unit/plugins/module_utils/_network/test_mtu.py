# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In which order MTUs are changed."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.module_utils._network.link import parse_link_table
from ansible_collections.longhaul.fleet.plugins.module_utils._network.mtu import depth, mtu_steps
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import FAMILY, link

LINKS = parse_link_table(FAMILY)


def order(mtu: int, now: int) -> list[str]:
    links = {name: link._replace(mtu=now) for name, link in LINKS.items()}
    return [argv[4] for argv in mtu_steps(dict.fromkeys(links, mtu), links)]


def test_parents_are_raised_first_and_lowered_last():
    assert order(9000, 1500) == ["eth0", "eth1", "bond0", "bond0.30"]
    assert order(1500, 9000) == ["bond0.30", "bond0", "eth0", "eth1"]
    assert order(1500, 1500) == []
    assert depth("bond0.30", LINKS) == 2 and depth("missing", LINKS) == 0


def test_steps_for_freebsd_and_for_links_that_are_not_there():
    assert mtu_steps({"em0": 9000, "em9": 9000}, parse_link_table({"em0": link("em0")}), "FreeBSD") == [
        ["ifconfig", "em0", "mtu", "9000"]
    ]
