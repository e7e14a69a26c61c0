# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of a host's network, in memory and as nic_info returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from .link import Link

if TYPE_CHECKING:
    from typing import TypedDict

    class ManagerFacts(TypedDict, total=False):
        """What a manager is like on a host; which members there are depends on the manager."""

        present: bool  # installed
        configured: bool  # it has something to manage
        running: bool  # networkd, networkmanager
        suffix: str | None  # ifupdown: the ending of files that it includes; None if it includes none
        ifenslave: bool  # ifupdown
        files: dict[str, str]  # ifcfg: the contents by link
        blocked: list[str]  # freebsd: files where the role needs folders

else:  # a host makes no class that only a type checker reads
    ManagerFacts = dict


class AnsibleConnection(NamedTuple):
    """The connection that Ansible uses to this host; all None for a local one."""

    link: str | None = None
    address: str | None = None
    peer: str | None = None


class OwnFile(NamedTuple):
    """A file of the role nic: the item of ``nic_links`` that it belongs to, and the devices that it makes."""

    entry: str
    makes: list[str]


class Host(NamedTuple):
    """The network of a host."""

    system: str
    links: dict[str, Link]
    connection: AnsibleConnection
    cloud: str | None
    managers: Mapping[str, ManagerFacts]
    default_manager: str | None
    own_files: dict[str, OwnFile]

    def dump(self) -> dict[str, Any]:
        """Return what nic_info returns."""
        return {
            **self._asdict(),
            "links": {name: link.dump() for name, link in self.links.items()},
            "connection": self.connection._asdict(),
            "own_files": {path: own._asdict() for path, own in self.own_files.items()},
        }
