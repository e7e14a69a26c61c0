# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which program manages which link, from what was read on the host. Private to the collection.

A manager is one of MANAGERS. Evidence is plain text, so that everything here can be shown by tables.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from typing import Any, Callable, Iterable, Mapping

MANAGERS = ("netplan", "networkd", "networkmanager", "ifupdown", "ifcfg", "freebsd")
_NETPLAN_NETWORK = re.compile(r".*/10-netplan-(?P<id>.+)\.network$")
# networkd's words for a link that it looks after, even without success; "unmanaged" is another (networkctl(1))
_NETWORKD_MANAGES = ("configured", "configuring", "initialized", "pending", "linger", "failed")


def parse_networkctl(text: str) -> dict[str, dict[str, str]]:
    """Read ``networkctl status --all``: state and network file of each link that networkd manages."""
    found: dict[str, dict[str, str]] = {}
    name = None
    for line in text.splitlines():
        head = re.match(r"\W*\d+: (\S+)\s*$", line)
        if head:
            name = head[1]
            found[name] = {"state": "", "file": ""}
        elif name:
            state = re.match(r"\s*State: \S+ \((\S+)\)", line)
            file = re.match(r"\s*Network File: (\S+)", line)
            if state:
                found[name]["state"] = state[1]
            if file and file[1] != "n/a":
                found[name]["file"] = file[1]
    return found


def parse_nmcli_devices(text: str) -> dict[str, dict[str, str]]:
    """Read ``nmcli -t -f DEVICE,STATE,CONNECTION,CON-UUID device``; a colon in a value is escaped by a backslash."""
    found = {}
    for line in text.splitlines():
        fields = [re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\):", line)]
        if len(fields) >= 4:
            found[fields[0]] = {"state": fields[1], "connection": fields[2], "uuid": fields[3]}
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
    """Give the ending that a file in ``folder`` needs in order to be read, or None where none is read."""
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


def managers_of(links: Iterable[str], evidence: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give each link its ``manager`` (None where nobody has it) and what the manager calls it.

    ``evidence``: ``networkctl`` and ``nmcli`` (as parsed above), ``nm_files``, ``interfaces`` (path of the file by
    interface, and ``methods``), ``ifcfg`` (path by interface), ``freebsd`` (value of ifconfig_IF by interface; None
    where the host is no FreeBSD). A link that netplan wrote for its renderer belongs to netplan.
    """
    return {name: next(filter(None, (look(name, evidence) for look in _LOOKS)), {"manager": None}) for name in links}


def _by_freebsd(name: str, evidence: Mapping[str, Any]) -> dict[str, Any] | None:
    values = evidence.get("freebsd")
    return None if values is None else {"manager": "freebsd", "value": values.get(name)}


def _by_networkd(name: str, evidence: Mapping[str, Any]) -> dict[str, Any] | None:
    found = evidence.get("networkctl", {}).get(name)
    if not found or found["state"] not in _NETWORKD_MANAGES or not found["file"]:
        return None
    written = _NETPLAN_NETWORK.match(found["file"])
    if written:
        return {"manager": "netplan", "renderer": "networkd", "id": written["id"], "file": found["file"]}
    return {"manager": "networkd", "file": found["file"]}


def _by_networkmanager(name: str, evidence: Mapping[str, Any]) -> dict[str, Any] | None:
    found = evidence.get("nmcli", {}).get(name)
    # "connected (externally)": NetworkManager shows what another program made
    if not found or found["state"] in ("unmanaged", "unavailable") or "externally" in found["state"]:
        return None
    file = evidence.get("nm_files", {}).get(found["uuid"], "")
    base = posixpath.basename(file)
    if base.startswith("netplan-"):
        label = base[len("netplan-") :].split(".nmconnection")[0]
        return {"manager": "netplan", "renderer": "NetworkManager", "id": label, "file": file}
    if "/network-scripts/ifcfg-" in file:
        return {"manager": "ifcfg", "file": file, "networkmanager": True}
    own = {key: found.get(key, "") for key in ("connection", "uuid", "mtu")}
    return {"manager": "networkmanager", "file": file, **own}


def _by_ifupdown(name: str, evidence: Mapping[str, Any]) -> dict[str, Any] | None:
    found = evidence.get("interfaces", {}).get(name)
    return {"manager": "ifupdown", **found} if found else None


def _by_ifcfg(name: str, evidence: Mapping[str, Any]) -> dict[str, Any] | None:
    file = evidence.get("ifcfg", {}).get(name)
    return {"manager": "ifcfg", "file": file, "networkmanager": False} if file else None


_Look = Callable[[str, Mapping[str, Any]], "dict[str, Any] | None"]
_LOOKS: tuple[_Look, ...] = (_by_freebsd, _by_networkd, _by_networkmanager, _by_ifupdown, _by_ifcfg)


def default_manager(managed: Mapping[str, Mapping[str, Any]], connection: str | None, hints: Mapping[str, bool]) -> Any:
    """Give the manager for links that nobody has yet, or None.

    That of the link that carries the connection counts most, then the one that has any other link, then the one that
    the host is set up for: ``hints`` says for each manager whether it runs or has its folder there.
    """
    if connection and managed.get(connection, {}).get("manager"):
        return managed[connection]["manager"]
    found = {data["manager"] for name, data in managed.items() if data["manager"] and name != "lo"}
    if len(found) == 1:
        return found.pop()
    candidates = [name for name in MANAGERS if hints.get(name)]
    if found:
        return None  # several: it has to be said which
    return candidates[0] if candidates else None
