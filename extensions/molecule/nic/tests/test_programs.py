# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the managers' own programs make of the files that were rendered for them."""

from __future__ import annotations

import pytest

testinfra_hosts = ["ansible://programs"]

ROOT = "/root/rendered"
PROFILES = "/etc/NetworkManager/system-connections"
PORTS = ("eth1", "eth2", "eth3", "eth4")


def test_netplans_generator_accepts_the_files(host):
    host.run_expect([0], f"netplan generate --root-dir {ROOT}/netplan")
    made = host.file(f"{ROOT}/netplan/run/systemd/network/10-netplan-bond0.netdev").content_string
    for line in ("Mode=802.3ad", "LACPTransmitRate=fast", "TransmitHashPolicy=layer3+4", "MinLinks=1", "MTUBytes=9000"):
        assert line in made
    port = host.file(f"{ROOT}/netplan/run/systemd/network/10-netplan-eth3.network").content_string
    assert "Bond=bond1" in port and "PrimarySlave=true" in port
    vlan = host.file(f"{ROOT}/netplan/run/systemd/network/10-netplan-bond0.30.netdev").content_string
    assert "Id=30" in vlan


def test_netplans_generator_would_refuse_a_bad_mode(host):
    host.run_expect([0], f"rm -rf /root/bad && cp -a {ROOT}/netplan /root/bad")
    host.run_expect([0], "sed -i s/802.3ad/failover/ /root/bad/etc/netplan/95-longhaul-nic-bond0.yaml")
    assert host.run("netplan generate --root-dir /root/bad").rc == 1


@pytest.mark.parametrize("name", ["bond0", "bond0.30", "bond1", *PORTS])
def test_networkmanager_reads_the_profiles(host, name):
    path = f"{ROOT}/networkmanager{PROFILES}/longhaul-nic-{name}.nmconnection"
    # offline, modify reads a profile, checks all of it and writes it again
    again = host.run(f"nmcli --offline connection modify connection.autoconnect yes < {path}")
    assert again.rc == 0, again.stderr
    for line in host.file(path).content_string.splitlines():
        key, _equals, value = line.partition("=")
        if key in (
            "mode",
            "miimon",
            "primary",
            "lacp_rate",
            "xmit_hash_policy",
            "min_links",
            "mtu",
            "address1",
            "id",
            "parent",
        ):
            assert value in again.stdout, line


def test_networkmanager_would_refuse_a_bad_mode(host):
    path = f"{ROOT}/networkmanager{PROFILES}/longhaul-nic-bond0.nmconnection"
    bad = f"sed s/802.3ad/failover/ {path} | nmcli --offline connection modify connection.autoconnect yes"
    assert host.run(bad).rc != 0


def test_networkmanager_takes_the_default_for_one_link(host):
    folder = f"{ROOT}/networkmanager/etc/NetworkManager/conf.d"
    said = host.check_output(f"NetworkManager --print-config --config-dir {folder}")
    assert "[connection-longhaul-nic-eth5]" in said and "ethernet.mtu=9000" in said


@pytest.mark.parametrize("entry, names", [("bond0", "bond0 bond0.30"), ("bond1", "bond1"), ("eth5", "eth5")])
def test_ifup_understands_the_stanzas(host, entry, names):
    path = f"{ROOT}/ifupdown/etc/network/interfaces.d/longhaul-nic-{entry}"
    said = host.run(f"ifup --no-act --force --verbose -i {path} {names}")
    assert said.rc == 0, said.stderr
    if entry == "bond0":
        assert "ip addr add 10.20.0.11/" in said.stderr + said.stdout


def test_ifup_would_refuse_a_stanza_without_an_address(host):
    path = f"{ROOT}/ifupdown/etc/network/interfaces.d/longhaul-nic-bond1"
    assert (
        host.run(f"sed /address/d {path} > /root/bad-stanza; ifup --no-act --force -i /root/bad-stanza bond1").rc != 0
    )


def test_networkd_understands_every_line(host):
    host.run_expect([0], f"cp {ROOT}/networkd/etc/systemd/network/* /etc/systemd/network/")
    host.run_expect([0], "chmod 644 /etc/systemd/network/*")
    host.run_expect([0], "systemctl restart systemd-networkd")
    journal = host.check_output("journalctl --no-pager -u systemd-networkd")
    bad = [line for line in journal.splitlines() if "Unknown" in line or "Failed to parse" in line]
    assert bad == []
    # and it would say so
    host.run_expect([0], "printf '[Match]\\nName=none\\n[Link]\\nMTUBits=1\\n' > /etc/systemd/network/99-bad.network")
    host.run_expect([0], "systemctl restart systemd-networkd")
    assert "Unknown key" in host.check_output("journalctl --no-pager -u systemd-networkd")
