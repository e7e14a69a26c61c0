# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One end of a transfer as the inventory and the probe describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import ProbeFacts
    from ansible_collections.longhaul.fleet.plugins.module_utils._methods.detect_programs import Programs

_SSH_LIKE = ("ssh", "ansible.builtin.ssh", "paramiko", "paramiko_ssh", "ansible.netcommon.libssh", "smart")


@dataclass(frozen=True)
class Endpoint:
    """A host in its role as source or destination, with what its probe found."""

    name: str  # in the inventory
    side: str  # "source" or "dest"
    address: str  # where the peer reaches it
    ssh_port: int
    probe: ProbeFacts

    @property
    def programs(self) -> Programs:
        """What the probe knows of the programs on this host."""
        return self.probe["programs"]

    @property
    def is_root(self) -> bool:
        """Whether the work on this host is done as root."""
        return self.probe["uid"] == 0

    @property
    def rsync_version(self) -> tuple[int, ...]:
        """The version of rsync; empty if there is none."""
        rsync = self.programs.get("rsync")
        return tuple(rsync["version"]) if rsync else ()


def is_reached_by_ssh(connection: str) -> bool:
    """Return whether a connection plugin of this name uses ssh."""
    return connection in _SSH_LIKE


def inventory_address(variables: Mapping[str, Any], name: str, connection: str) -> str:
    """Return the address that the inventory names for the peer to use; empty if it names none.

    ``longhaul_address`` wins, then ``ansible_ssh_host`` (the old name, which wins with Ansible's ssh), then
    ``ansible_host``. Without any of them, the inventory name itself serves where Ansible reaches the host by it (ssh);
    a container's or a local connection's name is no address.
    """
    if variables.get("longhaul_address"):
        return str(variables["longhaul_address"])
    if is_reached_by_ssh(connection):
        return str(variables.get("ansible_ssh_host") or variables.get("ansible_host") or name)
    return ""


def make_endpoint(name: str, side: str, variables: Mapping[str, Any], connection: str, probe: ProbeFacts) -> Endpoint:
    """Make an endpoint of a host's variables and its probe."""
    address = inventory_address(variables, name, connection)
    return Endpoint(
        name=name,
        side=side,
        address=address or (probe["addresses"] or ["127.0.0.1"])[0],
        ssh_port=ssh_port(variables, connection),
        probe=probe,
    )


def ssh_port(variables: Mapping[str, Any], connection: str) -> int:
    """Return the port at which a host's own sshd should listen: the inventory's for ssh connections, else 22."""
    port = variables.get("longhaul_ssh_port")
    if port is None and is_reached_by_ssh(connection):
        port = variables.get("ansible_ssh_port") or variables.get("ansible_port")  # as Ansible's ssh
    return int(port or 22)
