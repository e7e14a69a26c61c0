# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nic_info returns, and what a checkpoint has of a link."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._network.discover import discover
from ansible_collections.longhaul.fleet.plugins.module_utils._network.link import parse_link, parse_link_table
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import (
    address,
    as_host,
    host,
    link,
)

PORT = link("eth0", master="bond0", driver="e1000e", addresses=[{**address("10.0.0.1/24"), "broadcast": None}])
BOND = link("bond0", kind="bond", ports=["eth0"], driver=None, bond={"mode": "802.3ad"}, speed=None)


def test_a_host_is_returned_with_all_that_is_known_of_it():
    own = {"/etc/netplan/95-longhaul-nic-bond0.yaml": {"entry": "bond0", "makes": ["bond0"]}}
    facts = host(PORT, BOND, own_files=own, connection={"link": "eth0", "address": "10.0.0.1", "peer": "10.0.0.9"})
    found = as_host(facts)
    assert found.links["eth0"].addresses[0].bare == "10.0.0.1" and found.dump() == facts


def test_what_this_machine_has_can_be_returned():
    found = json.loads(json.dumps(discover().dump()))
    assert "lo" in found["links"] and as_host(found).dump() == found


def test_a_link_of_a_checkpoint_has_no_manager():
    kept = {name: value for name, value in PORT.items() if not name.startswith("manager")}
    assert parse_link(kept).dump() == kept


@pytest.mark.parametrize(
    "wrong, said",
    [
        ([PORT], "links is .*, and an object is expected"),
        ({"eth0": {**PORT, "mtu": "1500"}}, "mtu is '1500', and a value of type int is expected"),
        ({"eth0": {**PORT, "addresses": ["10.0.0.1/24"]}}, "an address is '10.0.0.1/24'"),
    ],
)
def test_another_shape_is_refused_by_name(wrong, said):
    with pytest.raises(WrongShape, match=said):
        parse_link_table(wrong)
