# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A network link, in memory and as JSON: nic_info returns it so, and a checkpoint keeps it so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from .._core.json_shape import as_object, member, optional, texts

if TYPE_CHECKING:
    from typing import TypedDict

    class ManagerDetail(TypedDict, total=False):
        """What a manager calls a link; which members there are depends on the manager."""

        file: str  # where it is configured; may be empty
        renderer: str  # netplan: networkd or NetworkManager
        id: str  # netplan: the name in its files
        networkmanager: bool  # ifcfg: whether NetworkManager has read the file
        connection: str  # networkmanager: the profile
        uuid: str
        mtu: str
        methods: list[str]  # ifupdown
        own: bool  # ifupdown: whether the file is the role's
        value: str | None  # freebsd: ifconfig_IF

else:  # a host makes no class that only a type checker reads
    ManagerDetail = dict


class Address(NamedTuple):
    """An address of a link, with its prefix length."""

    address: str
    dynamic: bool
    scope: str
    broadcast: str | None = None

    @property
    def bare(self) -> str:
        """The address without its prefix length."""
        return self.address.split("/")[0]

    @property
    def fixed(self) -> bool:
        """Whether it is a global address that somebody has set."""
        return self.scope == "global" and not self.dynamic


class Link(NamedTuple):
    """A link as it runs. What is None is unknown, or does not apply."""

    name: str
    kind: str  # physical, bond, vlan, bridge ..., loopback
    mtu: int | None
    min_mtu: int | None  # the driver's limits
    max_mtu: int | None
    up: bool
    mac: str | None
    master: str | None  # the bond or bridge that it is a port of
    parent: str | None  # what a VLAN is on
    addresses: tuple[Address, ...] = ()
    ports: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    speed: int | None = None  # Mbit/s
    driver: str | None = None
    bond: Mapping[str, str] | None = None  # the kernel's parameters of a bond on Linux
    manager: str | None = None
    manager_detail: ManagerDetail | None = None  # None until managers were looked at

    @property
    def detail(self) -> ManagerDetail:
        """Its name in its manager, empty if it has no manager."""
        return self.manager_detail or {}

    def dump(self) -> dict[str, Any]:
        """Return the link as JSON holds it."""
        values = self._asdict()
        values["addresses"] = [one._asdict() for one in self.addresses]
        values["ports"], values["children"] = list(self.ports), list(self.children)
        if self.bond is None:
            del values["bond"]
        if self.manager_detail is None:
            del values["manager"], values["manager_detail"]
        return values


Links = Mapping[str, Link]


def parse_link(value: object) -> Link:
    """Read the link of a checkpoint, which has no manager; raise WrongShape for anything else."""
    values = as_object(value, "a link")
    return Link(
        member(values, "name", str),
        member(values, "kind", str),
        optional(values, "mtu", int),
        optional(values, "min_mtu", int),
        optional(values, "max_mtu", int),
        member(values, "up", bool),
        optional(values, "mac", str),
        optional(values, "master", str),
        optional(values, "parent", str),
        tuple(_parse_address(one) for one in member(values, "addresses", list)),
        tuple(texts(values, "ports")),
        tuple(texts(values, "children")),
        optional(values, "speed", int),
        optional(values, "driver", str),
        optional(values, "bond", dict),
    )


def parse_link_table(value: object) -> dict[str, Link]:
    """Read links by name."""
    return {name: parse_link(link) for name, link in as_object(value, "links").items()}


def _parse_address(value: object) -> Address:
    values = as_object(value, "an address")
    return Address(
        member(values, "address", str),
        member(values, "dynamic", bool),
        member(values, "scope", str),
        optional(values, "broadcast", str),
    )
