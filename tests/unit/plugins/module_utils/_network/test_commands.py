# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that bring the old files of a manager back to life."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.module_utils._network.commands import boot_commands, restore_commands


def test_commands_for_the_way_back_by_manager():
    assert restore_commands("netplan", ["eth0"]) == [["netplan", "apply"]]
    assert restore_commands("networkd", ["eth0", "eth1"])[-1] == ["networkctl", "reconfigure", "eth0", "eth1"]
    assert restore_commands("networkmanager", ["eth0"])[-1] == ["nmcli", "device", "connect", "eth0"]
    assert restore_commands("ifupdown", ["eth0"]) == []
    assert restore_commands("freebsd", ["em0"])[0] == ["service", "netif", "restart", "em0"]
    assert boot_commands("networkd") == [] and boot_commands("netplan") == [["netplan", "generate"]]
