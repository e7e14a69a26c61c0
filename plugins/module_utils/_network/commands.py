# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that bring the old files of a manager back to life. Private to the collection.

What brings new ones to life is in ``planning.apply_commands``.
"""

from __future__ import annotations

from typing import Sequence

# netplan apply would do more: it takes up whatever else was left in its files, for all links, and needs udev.
RELOAD = {"networkd": ["networkctl", "reload"], "NetworkManager": ["nmcli", "connection", "reload"]}


def restore_commands(
    manager: str, links: Sequence[str], simple: bool = False, renderer: str | None = None
) -> list[list[str]]:
    """Return the commands that make a manager take up the files that are back. The links' state is restored afterwards.

    ``simple``: only MTUs had been changed. ``renderer``: that of netplan, where it is known.
    """
    if manager == "netplan":
        if renderer is None or (renderer == "NetworkManager" and not simple):
            return [["netplan", "apply"]]
        return [["netplan", "generate"], RELOAD[renderer]]
    if manager == "networkd":
        commands = [["networkctl", "reload"]]
        return commands if simple else [*commands, ["networkctl", "reconfigure", *links]]
    if manager == "networkmanager":
        commands = [["nmcli", "general", "reload", "conf"], ["nmcli", "connection", "reload"]]
        return commands if simple else [*commands, *(["nmcli", "device", "connect", name] for name in links)]
    if manager == "ifcfg":
        return [["nmcli", "connection", "reload"]]
    if manager == "freebsd" and not simple:
        return [["service", "netif", "restart", *links], ["service", "routing", "restart"]]
    return []  # ifupdown reads its files when it is called: what runs is restored by the checkpoint itself


def boot_commands(manager: str) -> list[list[str]]:
    """Return the commands for files that are restored at boot, before the manager starts."""
    # netplan has written its renderer's files from the new ones by then
    return [["netplan", "generate"]] if manager == "netplan" else []
