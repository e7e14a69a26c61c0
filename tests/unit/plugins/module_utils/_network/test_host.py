# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nic_info returns is read back as it was, and nothing else is."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._network.discover import discover
from ansible_collections.longhaul.fleet.plugins.module_utils._network.host import parse_host
from ansible_collections.longhaul.fleet.plugins.module_utils._network.link import parse_link
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import (
    address,
    host,
    link,
)

PORT = link("eth0", master="bond0", driver="e1000e", addresses=[{**address("10.0.0.1/24"), "broadcast": None}])
BOND = link("bond0", kind="bond", ports=["eth0"], driver=None, bond={"mode": "802.3ad"}, speed=None)


def test_a_host_is_the_same_after_it_was_returned_by_the_module():
    own = {"/etc/netplan/95-longhaul-nic-bond0.yaml": {"entry": "bond0", "makes": ["bond0"]}}
    facts = host(PORT, BOND, own_files=own, connection={"link": "eth0", "address": "10.0.0.1", "peer": "10.0.0.9"})
    found = parse_host(facts)
    assert found.connection.link == "eth0" and found.links["eth0"].addresses[0].bare == "10.0.0.1"
    assert found.dump() == facts


def test_what_this_machine_has_is_read_back():
    found = discover()
    assert parse_host(json.loads(json.dumps(found.dump()))) == found


def test_a_link_of_a_checkpoint_has_no_manager():
    kept = {name: value for name, value in PORT.items() if not name.startswith("manager")}
    assert parse_link(kept).dump() == kept


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"links": [PORT]}, "links is .*, and an object is expected"),
        ({"links": {"eth0": {**PORT, "mtu": "1500"}}}, "mtu is '1500', and a value of type int is expected"),
        ({"links": {"eth0": {**PORT, "addresses": ["10.0.0.1/24"]}}}, "an address is '10.0.0.1/24'"),
        ({"own_files": {"/etc/x": {"entry": "eth0"}}}, "makes is None, and a list of str is expected"),
        ({"system": None}, "system is None"),
    ],
)
def test_another_shape_is_refused_by_name(wrong, said):
    with pytest.raises(WrongShape, match=said):
        parse_host({**host(PORT, BOND), **wrong})
