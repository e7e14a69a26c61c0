# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of links: what is refused, and why."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.interfaces import parse_links
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import BOND, LACP


def bond(**more: Any) -> list[dict[str, Any]]:
    return [{"name": "bond0", "bond": {"mode": "802.3ad", "ports": ["eth0", "eth1"], **more}}]


def test_a_bond_comes_with_its_ports_before_it_and_its_vlans_after_it():
    (entry,), problems = parse_links([LACP])
    assert problems == []
    assert [(one.name, one.kind, one.mtu) for one in entry.devices] == [
        ("eth0", "port", 9000),
        ("eth1", "port", 9000),
        ("bond0", "bond", 9000),
        ("bond0.30", "vlan", 9000),
    ]
    assert entry.top.bond and entry.top.bond.miimon == 100
    assert entry.vlans[0].parent == "bond0" and entry.ports[1].master == "bond0"


def test_what_was_not_told_is_none():
    (entry,), problems = parse_links([{"name": "eth0", "mtu": 9000}])
    assert problems == [] and entry.top.mtu_only
    assert (entry.top.addresses, entry.top.gateway, entry.top.bond) == ((), None, None)


def test_a_port_may_be_listed_with_the_mtu_of_its_bond():
    entries, problems = parse_links([BOND, {"name": "eth0", "mtu": 9000}])
    assert problems == [] and [entry.name for entry in entries] == ["bond0"]


@pytest.mark.parametrize(
    "raw, said",
    [
        ([{"name": "eth0"}], "nothing is wanted of it"),
        ([{"name": "eth0", "mtu": 67}], "must be from 68 to 65535"),
        ([{"name": "eth0", "mtu": 65536}], "must be from 68 to 65535"),
        ([{"name": "eth0", "mtu": 1279, "addresses": ["fd00::1/64"]}], "must be from 1280 to 65535"),
        ([{"name": "eth0", "mtu": True}], "must be from 68"),
        ([{"name": "eth0", "mut": 9000}], "there is no option mut; known are addresses, bond"),
        ([{"name": "a b", "mtu": 1500}], "is no name of a network device"),
        ([{"name": "../x", "mtu": 1500}], "is no name of a network device"),
        ([{"name": "sixteen-letters-", "mtu": 1500}], "has 16 characters"),
        ([{"name": "eth0", "mtu": 1500}, {"name": "eth0", "mtu": 1500}], "eth0 is listed 2 times"),
        ([{"name": "eth0", "state": "gone"}], "must be present or absent"),
        ([{"name": "eth0", "addresses": ["10.0.0.1"]}], "it has no prefix length"),
        ([{"name": "eth0", "addresses": ["10.0.0.300/24"]}], "is not usable"),
        ([{"name": "eth0", "addresses": ["10.0.0.1/24"], "gateway": "10.0.1.1"}], "is in the network of none"),
        ([{"name": "eth0", "addresses": ["10.0.0.1/24"], "gateway": "router"}], "the gateway is not usable"),
        ([{"name": "eth0", "mtu": 1500, "vlans": [{"id": 30, "mtu": 9000}]}], "above the 1500 of the link below it"),
        ([{"name": "eth0", "vlans": [{"id": 0}]}], "must be from 1 to 4094"),
        ([{"name": "eth0", "vlans": [{"id": 4095}]}], "must be from 1 to 4094"),
        ([{"name": "eth0", "vlans": [{"id": 3}, {"id": 3}]}], "eth0.3 is used by eth0 and by eth0"),
        ([{"name": "eth0", "vlans": [{"id": 3, "mode": 1}]}], "there is no option mode"),
        (bond(mode="lacp"), "it must be one of balance-rr, active-backup"),
        (bond(ports=[]), "the bond has no ports"),
        (bond(ports=["eth0", "eth0"]), "eth0 is used by bond0 and by bond0"),
        (bond(ports=["bond0"]), "cannot be its own port"),
        (bond(primary="eth7", mode="active-backup"), "the primary port eth7 is not among"),
        (bond(primary="eth0"), "primary means nothing in mode 802.3ad"),
        (bond(lacp_rate="fast", mode="active-backup"), "lacp_rate means nothing in mode active-backup"),
        (bond(lacp_rate="often"), "it must be slow or fast"),
        (bond(xmit_hash_policy="layer4"), "it must be one of layer2, layer2+3"),
        (bond(xmit_hash_policy="layer2", mode="active-backup"), "xmit_hash_policy means nothing"),
        (bond(min_links=3), "the bond has 2 ports"),
        (bond(miimon=0), "a dead port is never noticed"),
        (bond(speed=1), "there is no option speed"),
        (
            [BOND, {"name": "bond1", "bond": {"mode": "802.3ad", "ports": ["eth1"]}}],
            "eth1 is used by bond0 and by bond1",
        ),
        ([BOND, {"name": "eth1", "mtu": 1500}], "a bond sets the MTU of its ports"),
        ([BOND, {"name": "eth1", "addresses": ["10.0.0.1/24"]}], "it is a port of bond0, so it cannot have addresses"),
    ],
)
def test_refused(raw: list[dict[str, Any]], said: str):
    problems = parse_links(raw)[1]
    assert any(said in problem for problem in problems), problems
