# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The link after the role, after a black hole and after a change that nobody confirmed: as the role had left it."""

from __future__ import annotations

import json

import pytest

testinfra_hosts = ["ansible://linked"]

OURS = {
    "nic-debian12": "/etc/systemd/network/20-admin.network.d/50-longhaul-nic.conf",
    "nic-debian13": "/etc/netplan/95-longhaul-nic-lh0.yaml",
}
ADMINS = {
    "nic-debian12": ("/etc/systemd/network/20-admin.network", 0o644, "Address=10.77.0.1/24"),
    "nic-debian13": ("/etc/netplan/10-admin.yaml", 0o600, "addresses: [10.77.0.1/24,"),
}


@pytest.fixture
def name(host) -> str:
    return host.backend.get_hostname()


def link(host) -> dict:
    return json.loads(host.check_output("ip -j address show dev lh0"))[0]


def test_the_link_has_the_mtu(host):
    assert link(host)["mtu"] == 9000


def test_the_link_has_its_old_addresses_and_the_new_one(host):
    found = {f"{one['local']}/{one['prefixlen']}" for one in link(host)["addr_info"] if one["scope"] == "global"}
    assert found == {"10.77.0.1/24", "10.77.0.21/24", "fd77::1/64"}


def test_large_packets_pass_in_both_families(host):
    host.run_expect([0], "ping -c 1 -W 2 -M do -s 8972 10.77.0.2")
    host.run_expect([0], "ping -6 -c 1 -W 2 -M do -s 8952 fd77::2")


def test_what_was_told_is_in_a_file_of_its_own(host, name):
    text = host.file(OURS[name]).content_string
    assert "9000" in text and "10.77.0.21/24" in text and "10.77.0.1/24" not in text
    assert "longhaul.fleet nic: lh0" in text


def test_the_administrators_file_is_untouched(host, name):
    path, mode, line = ADMINS[name]
    assert host.file(path).mode == mode
    assert line in host.file(path).content_string and "9000" not in host.file(path).content_string


def test_the_manager_still_has_the_link(host):
    # "configuring" as long as networkd listens for a router, of which there is none
    assert "State: routable (configur" in host.check_output("networkctl --no-pager status lh0")


def test_networkd_understands_every_line(host):
    journal = host.check_output("journalctl --no-pager -u systemd-networkd")
    bad = [
        line for line in journal.splitlines() if "longhaul" in line and ("Unknown" in line or "Failed to parse" in line)
    ]
    assert bad == []


def test_what_broke_was_removed(host):
    assert not host.file("/etc/systemd/network/99-broken.network").exists


def test_the_black_hole_was_named(host):
    said = host.file("/root/black-hole").content_string
    assert "the change was reverted" in said and "a layer-2 black hole" in said
    assert "The largest that passes has 8004 bytes" in said  # a veth leaves room for a VLAN tag


def test_no_timer_unit_or_checkpoint_is_left(host):
    assert "longhaul-" not in host.check_output("systemctl list-units --all --no-legend --plain")
    assert not host.file("/etc/systemd/system/longhaul-revert-network-boot.service").exists
    assert not host.file("/etc/systemd/system/longhaul-revert-nic-boot.service").exists
    left = host.check_output("ls /var/lib/longhaul-network").split()
    assert sorted(name for name in left if not name.endswith((".last.json", ".lock", ".log"))) == []


def test_how_the_last_changes_ended_is_known(host):
    last = json.loads(host.file("/var/lib/longhaul-network/network.last.json").content_string)
    assert (last["outcome"], last["by"]) == ("reverted", "timer")
    last = json.loads(host.file("/var/lib/longhaul-network/nic.last.json").content_string)
    assert (last["outcome"], last["by"]) == ("reverted", "request")


def test_tcp_settings_are_in_a_file_of_their_own(host):
    assert not host.file("/etc/sysctl.d/90-longhaul-nic.conf").exists
    file = host.file("/etc/sysctl.d/91-fleet.conf")
    lines = dict(line.split(" = ") for line in file.content_string.splitlines() if not line.startswith("#"))
    assert file.mode == 0o644 and lines["net.core.rmem_max"] == "268435456"
    assert lines["net.ipv4.tcp_rmem"].split()[:2] == host.check_output("cat /proc/sys/net/ipv4/tcp_rmem").split()[:2]
    assert lines["net.ipv4.tcp_rmem"].split()[2] == "134217728" and lines["net.ipv4.tcp_mtu_probing"] == "1"
    assert lines["net.ipv4.tcp_congestion_control"] == "reno" and lines["net.core.default_qdisc"] == "fq_codel"
    # a dry run of the real program: it knows every key but those that a container does not have
    said = host.run("sysctl --dry-run -p /etc/sysctl.d/91-fleet.conf")
    assert "tcp_rmem" in said.stdout + said.stderr
