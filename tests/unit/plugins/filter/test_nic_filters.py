# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role's filters make of results."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.filter.nic_commands import nic_commands
from ansible_collections.longhaul.fleet.plugins.filter.nic_path_problems import nic_path_problems
from ansible_collections.longhaul.fleet.plugins.filter.nic_plan import nic_plan
from ansible_collections.longhaul.fleet.plugins.filter.nic_tcp import nic_tcp
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import host, link

PEER = {"host": "beta", "address": "10.0.0.2"}
LOST = {"item": PEER, "passed": False, "message": "lost", "largest": 1500}
CURRENT = {"tcp_rmem": "1 2 3", "tcp_wmem": "1 2 3", "tcp_available_congestion_control": "cubic"}


def test_both_directions_are_told_by_name():
    assert nic_path_problems([LOST], "alpha", [LOST]) == [
        "alpha to beta (10.0.0.2): lost. The largest that passes has 1500 bytes",
        "beta to alpha: lost. The largest that passes has 1500 bytes",
    ]
    assert nic_path_problems([dict(LOST, passed=True)], "alpha", [dict(LOST, passed=True)]) == []


def test_a_test_without_an_answer_has_not_passed():
    unreachable = {"item": PEER, "unreachable": True, "msg": "Failed to connect"}
    assert nic_path_problems([unreachable], "alpha") == ["alpha to beta (10.0.0.2): Failed to connect"]
    assert nic_path_problems([{"item": PEER}], "alpha") == ["alpha to beta (10.0.0.2): the test gave no answer"]
    assert nic_path_problems([], "alpha", [{"item": PEER, "skipped": True}]) == []


def test_a_peer_that_is_not_in_the_inventory_is_named_by_its_address():
    assert nic_path_problems([dict(LOST, item={"address": "10.0.0.9"}, largest=None)], "a") == ["a to 10.0.0.9: lost"]


def test_the_speed_of_the_links_that_are_wanted_counts():
    facts = host(
        link("eth0", speed=1000), link("eth1", speed=40000), link("lo", kind="loopback", mtu=65536, speed=None)
    )
    slow = nic_tcp(facts, {"eth0": 1500}, CURRENT)
    assert slow["speed"] == 1000 and "net.ipv4.tcp_mtu_probing" not in slow["settings"]
    assert nic_tcp(facts, {"eth1": 9000}, CURRENT)["settings"]["net.ipv4.tcp_mtu_probing"] == "1"
    # without any, all links
    assert nic_tcp(facts, {}, CURRENT)["speed"] == 40000
    assert nic_tcp(facts, {}, CURRENT, speed=10000, header="# top")["content"].startswith(
        "# top\nnet.core.default_qdisc"
    )


def test_plan_and_commands_go_together():
    raw, facts = [{"name": "eth0", "mtu": 9000}], host(link("eth0"))
    plan = nic_plan(raw, facts, header="# Managed by Ansible")
    assert plan["files"][0]["content"].startswith("# Managed by Ansible\n# longhaul.fleet nic: eth0\n")
    assert nic_commands(raw, plan, facts, [])["apply"] == [["ip", "link", "set", "dev", "eth0", "mtu", "9000"]]
