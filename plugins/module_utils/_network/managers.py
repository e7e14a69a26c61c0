# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The manager of each link, from what was read on the host. Private to the collection.

A manager is one of MANAGERS.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from typing import Callable, Iterable, Mapping, NamedTuple

from .link import ManagerDetail

MANAGERS = ("netplan", "networkd", "networkmanager", "ifupdown", "ifcfg", "freebsd")
_NETPLAN_NETWORK = re.compile(r".*/10-netplan-(?P<id>.+)\.network$")
# networkd's words for a link that it looks after, even without success; "unmanaged" is another (networkctl(1))
_NETWORKD_MANAGES = ("configured", "configuring", "initialized", "pending", "linger", "failed")


class NetworkdLink(NamedTuple):
    """What networkctl says of a link: its state, and its network file or an empty string."""

    state: str = ""
    file: str = ""


class NmDevice(NamedTuple):
    """What nmcli says of a device."""

    state: str
    connection: str
    uuid: str
    mtu: str = ""  # that its profile sets


class Stanzas(NamedTuple):
    """What ifupdown's files say of an interface; ``own``: the file is the role's."""

    file: str
    methods: list[str]
    own: bool = False


class Evidence(NamedTuple):
    """What was read on a host, by link where nothing else is said."""

    networkctl: Mapping[str, NetworkdLink] = {}
    nmcli: Mapping[str, NmDevice] = {}
    nm_files: Mapping[str, str] = {}  # the file of each profile, by its UUID
    interfaces: Mapping[str, Stanzas] = {}
    ifcfg: Mapping[str, str] = {}  # the path
    freebsd: bool = False  # the host runs FreeBSD


class LinkManagement(NamedTuple):
    """The manager of a link, None for nobody, and the manager's name of it."""

    manager: str | None
    detail: ManagerDetail


def parse_networkctl(text: str) -> dict[str, NetworkdLink]:
    """Read ``networkctl status --all``: state and network file of each link that networkd manages."""
    found: dict[str, NetworkdLink] = {}
    name = None
    for line in text.splitlines():
        head = re.match(r"\W*\d+: (\S+)\s*$", line)
        if head:
            name = head[1]
            found[name] = NetworkdLink()
        elif name:
            state = re.match(r"\s*State: \S+ \((\S+)\)", line)
            file = re.match(r"\s*Network File: (\S+)", line)
            if state:
                found[name] = found[name]._replace(state=state[1])
            if file and file[1] != "n/a":
                found[name] = found[name]._replace(file=file[1])
    return found


def parse_nmcli_devices(text: str) -> dict[str, NmDevice]:
    """Read ``nmcli -t -f DEVICE,STATE,CONNECTION,CON-UUID device``; a colon in a value is escaped by a backslash."""
    found = {}
    for line in text.splitlines():
        fields = [re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\):", line)]
        if len(fields) >= 4:
            found[fields[0]] = NmDevice(*fields[1:4])
    return found


def parse_nmcli_files(text: str) -> dict[str, str]:
    """Read ``nmcli -t -f UUID,FILENAME connection``: the file of each profile."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {uuid: re.sub(r"\\(.)", r"\1", file) for uuid, file in pairs}


def parse_interfaces(text: str) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Read a file of ifupdown: the methods by interface (``{"eth0": ["inet static"]}``), and what it includes.

    An include is (``source`` or ``source-directory``, pattern); see interfaces(5).
    """
    stanzas: dict[str, list[str]] = {}
    includes = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == "iface":
            stanzas.setdefault(words[1], []).append(" ".join(words[2:4]))
        elif len(words) >= 2 and words[0] in ("source", "source-directory"):
            includes += [(words[0], pattern) for pattern in words[1:]]
    return stanzas, includes


def include_suffix(includes: Iterable[tuple[str, str]], folder: str = "/etc/network/interfaces.d") -> str | None:
    """Return the ending that a file in ``folder`` needs in order to be read, or None if none is read."""
    for word, pattern in includes:
        if not pattern.startswith("/"):
            pattern = posixpath.join("/etc/network", pattern)
        if word == "source-directory" and posixpath.normpath(pattern) == folder:
            return ""
        if word == "source" and posixpath.dirname(pattern) == folder:
            for suffix in ("", ".cfg", ".conf"):
                if fnmatch.fnmatch(f"longhaul-nic-x{suffix}", posixpath.basename(pattern)):
                    return suffix
    return None


def managers_of(links: Iterable[str], evidence: Evidence) -> dict[str, LinkManagement]:
    """Return who manages each link. One that netplan wrote for its renderer belongs to netplan."""
    return {
        name: next(filter(None, (find(name, evidence) for find in _FINDERS)), LinkManagement(None, {}))
        for name in links
    }


def _by_freebsd(_name: str, evidence: Evidence) -> LinkManagement | None:
    return LinkManagement("freebsd", {"value": None}) if evidence.freebsd else None


def _by_networkd(name: str, evidence: Evidence) -> LinkManagement | None:
    found = evidence.networkctl.get(name)
    if not found or found.state not in _NETWORKD_MANAGES or not found.file:
        return None
    written = _NETPLAN_NETWORK.match(found.file)
    if written:
        return LinkManagement("netplan", {"renderer": "networkd", "id": written["id"], "file": found.file})
    return LinkManagement("networkd", {"file": found.file})


def _by_networkmanager(name: str, evidence: Evidence) -> LinkManagement | None:
    found = evidence.nmcli.get(name)
    # "connected (externally)": NetworkManager shows what another program made
    if not found or found.state in ("unmanaged", "unavailable") or "externally" in found.state:
        return None
    file = evidence.nm_files.get(found.uuid, "")
    base = posixpath.basename(file)
    if base.startswith("netplan-"):
        label = base[len("netplan-") :].split(".nmconnection")[0]
        return LinkManagement("netplan", {"renderer": "NetworkManager", "id": label, "file": file})
    if "/network-scripts/ifcfg-" in file:
        return LinkManagement("ifcfg", {"file": file, "networkmanager": True})
    own: ManagerDetail = {"file": file, "connection": found.connection, "uuid": found.uuid, "mtu": found.mtu}
    return LinkManagement("networkmanager", own)


def _by_ifupdown(name: str, evidence: Evidence) -> LinkManagement | None:
    found = evidence.interfaces.get(name)
    if not found:
        return None
    return LinkManagement("ifupdown", {"file": found.file, "methods": found.methods, "own": found.own})


def _by_ifcfg(name: str, evidence: Evidence) -> LinkManagement | None:
    file = evidence.ifcfg.get(name)
    return LinkManagement("ifcfg", {"file": file, "networkmanager": False}) if file else None


_FINDERS: tuple[Callable[[str, Evidence], LinkManagement | None], ...] = (
    _by_freebsd,
    _by_networkd,
    _by_networkmanager,
    _by_ifupdown,
    _by_ifcfg,
)


def default_manager(managed: Mapping[str, str | None], connection: str | None, hints: Mapping[str, bool]) -> str | None:
    """Return the manager for links that nobody has yet, or None.

    ``managed``: the manager of each link. That of the link that carries the connection counts most, then the one that
    has any other link, then the one that the host is set up for: ``hints`` says for each manager whether it runs or has
    its folder there.
    """
    if connection and managed.get(connection):
        return managed[connection]
    found = {manager for name, manager in managed.items() if manager and name != "lo"}
    if len(found) == 1:
        return found.pop()
    candidates = [name for name in MANAGERS if hints.get(name)]
    if found:
        return None  # several: it has to be said which
    return candidates[0] if candidates else None
