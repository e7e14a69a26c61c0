# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan for a host: what stands in its way, in which order it is done, and how it is undone."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.plan import NicPlan, make_commands
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.plan import make_plan as plan_for_host
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.problems import find_stopped
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import (
    BOND,
    FAMILY,
    LACP,
    address,
    as_host,
    host,
    link,
)

JUMBO = [{"name": "eth0", "mtu": 9000}]


def make_plan(raw: list[dict[str, Any]], facts: dict[str, Any], **more: Any) -> NicPlan:
    return plan_for_host(raw, as_host(facts), **more)


def problems(raw: list[dict[str, Any]], facts: dict[str, Any], **more: Any) -> str:
    return "\n".join(make_plan(raw, facts, **more).problems)


@pytest.mark.parametrize(
    "raw, facts, said",
    [
        (JUMBO, host(link("eth1")), "eth0 is not there; this host has eth1"),
        (JUMBO, host(link("eth0", max_mtu=1500)), "its driver takes an MTU of at most 1500, and 9000 is wanted"),
        ([{"name": "eth0", "mtu": 576}], host(link("eth0", min_mtu=1000)), "at least 1000"),
        ([{"name": "lo", "mtu": 9000}], host(link("lo", kind="loopback")), "is the loopback device"),
        (
            [{"name": "eth0", "mtu": 1400}],
            host(link("eth0", children=["eth0.5"]), link("eth0.5", kind="vlan", parent="eth0")),
            "an MTU of 1400 is below the 1500 of eth0.5",
        ),
        (
            [{"name": "eth0.5", "mtu": 9000}],
            host(link("eth0", children=["eth0.5"]), link("eth0.5", kind="vlan", parent="eth0")),
            "above the 1500 of eth0",
        ),
        (JUMBO, host(link("eth0", master="bond0"), link("bond0", kind="bond", ports=["eth0"])), "is a port of bond0"),
        (
            [BOND],
            host(link("eth0"), link("eth1"), connection={"link": "eth1", "address": "192.0.2.1", "peer": "x"}),
            "eth1 carries the address in use (192.0.2.1)",
        ),
        (
            [BOND],
            host(link("eth0"), link("eth1", addresses=[address("192.0.2.1/24")])),
            "eth1 has the address 192.0.2.1",
        ),
        ([BOND], host(link("eth0"), link("eth1", master="br0")), "is a port of br0 already"),
        ([BOND], host(link("eth0"), link("eth1", children=["eth1.7"]), link("eth1.7")), "has eth1.7 on top of it"),
        ([BOND], host(link("eth0")), "the port eth1 of bond0 is not there"),
        (
            [BOND],
            host(link("eth0"), link("eth1"), link("bond0", kind="bridge")),
            "there is a link of that name already",
        ),
        (
            [{"name": "eth0", "vlans": [{"id": 5, "name": "v5"}]}],
            host(link("eth0"), link("v5", kind="vlan", parent="eth9")),
            "it is on eth9 now",
        ),
        (
            [{"name": "eth0", "addresses": ["192.0.2.1/24"]}],
            host(link("eth0"), link("eth1", addresses=[address("192.0.2.1/24")])),
            "eth1 has the address 192.0.2.1, too",
        ),
        (JUMBO, host(link("eth0"), manager=None), "no program was found that manages it"),
        (
            [BOND],
            host(link("eth0", manager="netplan"), link("eth1", manager="networkd")),
            "eth0 by netplan, eth1 by networkd",
        ),
    ],
)
def test_what_stands_in_the_way(raw, facts, said):
    assert said in problems(raw, facts)


def test_a_port_that_got_its_address_by_dhcp_may_lose_it():
    facts = host(link("eth0"), link("eth1", addresses=[address("192.0.2.1/24", dynamic=True)]))
    assert problems([BOND], facts) == ""


def test_a_family_that_fits_after_the_change_is_no_problem():
    facts = host(link("eth0", children=["eth0.5"]), link("eth0.5", kind="vlan", parent="eth0"))
    raw = [{"name": "eth0", "mtu": 1400}, {"name": "eth0.5", "mtu": 1400}]
    assert problems(raw, facts) == ""


def test_problems_of_managers():
    facts = host(link("eth0"), link("eth1"))
    facts["managers"]["netplan"]["present"] = False
    assert "netplan was chosen, and it is not installed" in problems(JUMBO, facts)
    facts["managers"]["ifupdown"]["suffix"] = None
    assert "source /etc/network/interfaces.d/*" in problems(JUMBO, facts, manager="ifupdown")
    owned = host(link("eth0"), link("eth1", manager="ifupdown", manager_detail={"file": "/etc/network/interfaces"}))
    assert "eth1: /etc/network/interfaces configures it already" in problems([BOND], owned, manager="ifupdown")
    detail = {"connection": "Wired", "uuid": "u", "mtu": "1500", "file": ""}
    wired = host(link("eth0", manager="networkmanager", manager_detail=detail))
    assert "its profile 'Wired' sets an MTU of 1500 itself" in problems(JUMBO, wired)
    detail["mtu"] = "auto"
    assert problems(JUMBO, wired) == ""
    more = [{"name": "eth0", "addresses": ["192.0.2.1/24"]}]
    assert "nic_edit_existing: true" in problems(more, wired)
    assert problems(more, wired, edit_existing=True) == ""
    legacy = host(link("eth0"))
    legacy["managers"]["ifcfg"]["files"] = {"eth0": "DEVICE=eth0\n"}
    assert "ifcfg-eth0 is not the role's" in problems(JUMBO, legacy, manager="ifcfg")
    assert problems(JUMBO, legacy, manager="ifcfg", edit_existing=True) == ""


@pytest.mark.parametrize(
    "current, given, fine",
    [
        ("netplan", "networkd", True),
        ("ifcfg", "networkmanager", True),
        ("networkmanager", "networkd", False),
        ("ifupdown", "netplan", False),
    ],
)
def test_two_managers_for_one_link(current, given, fine):
    said = problems(JUMBO, host(link("eth0", manager=current)), manager=given)
    assert (f"eth0 is managed by {current} now, and nic_manager says {given}" in said) != fine


def test_problems_of_freebsd():
    facts = host(link("eth0"), link("eth1"), system="FreeBSD")
    facts["managers"]["freebsd"]["blocked"] = ["/etc/rc.conf.d/netif"]
    raw = [
        {"name": "bond0", "bond": {"mode": "balance-alb", "ports": ["eth0", "eth1"]}, "vlans": [{"id": 5, "name": "v"}]}
    ]
    said = problems(raw, facts, manager="freebsd")
    assert "no mode like balance-alb" in said and "a name like lagg0" in said
    assert "move it to /etc/rc.conf.d/netif/local" in said and "names a VLAN bond0.5" in said
    assert "nothing like min_links" in problems([LACP], facts, manager="freebsd")


def commands(raw: list[dict[str, Any]], facts: dict[str, Any], **more: Any) -> dict[str, Any]:
    plan = make_plan(raw, facts, **more)
    assert plan.problems == ()
    found = make_commands(plan, as_host(facts), [file.path for file in plan.files] + list(plan.absent))
    return {name: [" ".join(argv) for argv in one] for name, one in zip(("apply", "restore"), found)}


SET = "ip link set dev eth0 mtu 9000"


@pytest.mark.parametrize(
    "manager, apply, restore",
    [
        (
            "netplan",
            [SET, "netplan generate", "networkctl reload"],
            ["netplan generate", "networkctl reload"],
        ),
        ("networkd", [SET, "networkctl reload"], ["networkctl reload"]),
        (
            "networkmanager",
            [SET, "nmcli general reload conf"],
            ["nmcli general reload conf", "nmcli connection reload"],
        ),
        ("ifupdown", [SET], []),
    ],
)
def test_an_mtu_alone_takes_no_link_down(manager, apply, restore):
    found = commands(JUMBO, host(link("eth0")), manager=manager)
    assert found == {"apply": apply, "restore": restore}


def test_a_bond_is_made_by_its_manager():
    facts = host(link("eth0"), link("eth1"))
    assert commands([BOND], facts)["apply"] == [
        SET,
        "ip link set dev eth1 mtu 9000",
        "netplan generate",
        "networkctl reload",
    ]
    assert commands([BOND], facts, manager="ifupdown")["apply"][-1] == "ifup --force bond0"
    up = [line for line in commands([LACP], facts, manager="networkmanager")["apply"] if "connection up" in line]
    assert [line.rsplit("-", 1)[1] for line in up] == ["bond0", "eth0", "eth1", "bond0.30"]
    free = commands([{**BOND, "name": "lagg0"}], host(*facts["links"].values(), system="FreeBSD"), manager="freebsd")
    assert free["apply"][-1] == "service netif start eth0 eth1 lagg0"


@pytest.mark.parametrize(
    ("runs", "commands", "words"),
    [
        (
            {"networkd": False},
            [["networkctl", "reload"]],
            "systemd-networkd does not run on this host, so it would apply",
        ),
        ({"networkd": False}, [["netplan", "generate"], ["networkctl", "reload"]], "enable --now systemd-networkd"),
        ({"networkmanager": False}, [["nmcli", "connection", "reload"]], "NetworkManager does not run"),
        ({"networkd": False, "networkmanager": False}, [["netplan", "apply"], ["ip", "link"], ["ifup", "eth0"]], ""),
        ({"networkd": True, "networkmanager": False}, [["networkctl", "reload"]], ""),
    ],
)
def test_a_manager_that_does_not_run_is_told_before_anything_is_applied(runs, commands, words):
    facts = host(link("eth0"))
    for name, is_running in runs.items():
        facts["managers"][name]["running"] = is_running
    found = find_stopped(commands, as_host(facts))
    assert len(found) == bool(words) and all(words in one for one in found)


def test_netplan_with_networkmanager_has_to_apply_what_is_more_than_an_mtu():
    detail = {"id": "eth0", "renderer": "NetworkManager"}
    facts = host(link("eth0", manager_detail=detail), link("eth1"))
    assert commands([BOND], facts) == {
        "apply": [SET, "ip link set dev eth1 mtu 9000", "netplan apply"],
        "restore": ["netplan apply"],
    }
    assert commands(JUMBO, facts)["apply"][1:] == ["netplan generate", "nmcli connection reload"]


def test_addresses_are_added_to_a_link_that_runs():
    raw = [{"name": "eth0", "addresses": ["192.0.2.5/24"], "gateway": "192.0.2.1"}]
    assert commands(raw, host(link("eth0")), manager="ifupdown")["apply"] == [
        "ip address replace 192.0.2.5/24 dev eth0",
        "ip link set dev eth0 up",
        "ip -4 route replace default via 192.0.2.1 dev eth0",
    ]


def running_bond(**more: str) -> dict[str, Any]:
    parameters = {"mode": "active-backup", "miimon": "200", "primary": "eth0", "lacp_rate": "slow", **more}
    return host(
        link("eth0", mtu=9000, master="bond0"),
        link("eth1", mtu=9000, master="bond0"),
        link(
            "bond0",
            kind="bond",
            mtu=9000,
            ports=["eth0", "eth1"],
            bond=parameters,
            addresses=[address("10.20.0.11/24")],
        ),
    )


def test_nothing_is_to_do_where_everything_is_as_wanted():
    facts = running_bond()
    plan = make_plan([BOND], facts)
    assert plan.live == []
    assert make_commands(plan, as_host(facts), []) == ([], [])


def test_a_bond_with_other_parameters_is_built_anew():
    facts = running_bond(mode="balance-rr")
    plan = make_plan([BOND], facts)
    assert plan.live == ["bond0: its parameters differ, so it is rebuilt"]
    assert commands([BOND], facts)["apply"] == [
        "ip link delete dev bond0",
        "netplan generate",
        "networkctl reload",
    ]


def test_what_differs_on_the_running_host_is_said():
    assert make_plan([BOND], host(link("eth0", mtu=9000), link("eth1"))).live == [
        "eth0: it is no port of bond0",
        "eth1: MTU 1500, wanted 9000",
        "eth1: it is no port of bond0",
        "bond0: it is not there yet",
    ]


def test_what_is_not_wanted_any_more_goes():
    own = {
        "/etc/netplan/95-longhaul-nic-bond0.yaml": {"entry": "bond0", "makes": ["bond0", "bond0.30"]},
        "/etc/netplan/95-longhaul-nic-eth9.yaml": {"entry": "eth9", "makes": []},
    }
    links = (link("bond0", kind="bond"), link("bond0.30", kind="vlan", parent="bond0"))
    facts = host(*links, own_files=own)
    raw = [{"name": "bond0", "state": "absent"}]
    plan = make_plan(raw, facts)
    assert plan.absent == ["/etc/netplan/95-longhaul-nic-bond0.yaml"] and plan.files == []
    assert commands(raw, facts)["apply"] == [
        "ip link delete dev bond0.30",
        "ip link delete dev bond0",
        "netplan generate",
        "networkctl reload",
    ]
    # an item that is not listed is left alone
    assert "/etc/netplan/95-longhaul-nic-eth9.yaml" not in plan.save


def test_everything_that_hangs_together_is_kept():
    facts = host(*FAMILY.values())
    facts["links"]["bond0"]["children"] = ["bond0.30"]
    assert make_plan([{"name": "bond0", "mtu": 9000}], facts).links == ["bond0", "bond0.30", "eth0", "eth1"]


def test_ifenslave():
    facts = host(link("eth0"), link("eth1"))
    facts["managers"]["ifupdown"]["ifenslave"] = False
    assert make_plan([BOND], facts, manager="ifupdown").installs_ifenslave
    assert not make_plan([BOND], facts).installs_ifenslave
    assert not make_plan(JUMBO, facts, manager="ifupdown").installs_ifenslave


def test_plan_and_commands_go_together():
    raw, facts = [{"name": "eth0", "mtu": 9000}], host(link("eth0"))
    plan = make_plan(raw, facts, header="# Managed by Ansible")
    assert plan.files[0].content.startswith("# Managed by Ansible\n# longhaul.fleet nic: eth0\n")
    assert make_commands(plan, as_host(facts), [])[0] == [["ip", "link", "set", "dev", "eth0", "mtu", "9000"]]
