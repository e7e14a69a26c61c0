# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading a host's links and managers. Changes nothing. Private to the collection.

What is read here is judged by the pure functions of ``facts`` and ``managers``.
"""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import re

from .._core.subprocesses import find_program
from . import facts, managers
from .file_marks import made_by, owner_of
from .host import AnsibleConnection, Host, ManagerFacts, OwnFile
from .link import Link, Links
from .programs import run

_OWN = (
    "/etc/netplan/*longhaul-nic-*",
    "/etc/systemd/network/*longhaul-nic-*",
    "/etc/systemd/network/*.d/*longhaul-nic*",
    "/etc/NetworkManager/system-connections/longhaul-nic-*",
    "/etc/NetworkManager/conf.d/*longhaul-nic-*",
    "/etc/network/interfaces.d/longhaul-nic-*",
    "/etc/sysconfig/network-scripts/ifcfg-*",
    "/etc/rc.conf.d/*/longhaul_nic_*",
)
_BOND_FILES = ("mode", "miimon", "primary", "lacp_rate", "xmit_hash_policy", "min_links")
_NETWORKD_LINKS = "/run/systemd/netif/links"
_DMI = ("sys_vendor", "product_name", "chassis_asset_tag")


def discover() -> Host:
    """Return all that is known of this host's network."""
    system = platform.system()
    links = read_links(system)
    evidence, here = _evidence(system, links)
    managed = managers.managers_of(links, evidence)
    connection = find_connection(links, system)
    hints = {name: has["present"] and has.get("configured", True) for name, has in here.items()}
    of_links = {name: one.manager for name, one in managed.items()}
    return Host(
        system,
        {
            name: link._replace(manager=managed[name].manager, manager_detail=managed[name].detail)
            for name, link in links.items()
        },
        connection,
        _cloud(),
        here,
        managers.default_manager(of_links, connection.link, hints),
        _own_files(),
    )


def read_links(system: str) -> dict[str, Link]:
    """Return the links with speed, driver and the parameters of bonds."""
    if system == "FreeBSD":
        links = facts.parse_ifconfig(run(["ifconfig", "-a"]).out)
    else:
        ended = run(["ip", "-d", "-j", "address", "show"])
        if ended.code:
            raise RuntimeError(f"the links cannot be read: {ended.said}; iproute2 4.18 or newer is needed")
        links = facts.parse_ip_links(ended.out)
    return {
        name: link._replace(
            speed=_speed(name),
            driver=os.path.basename(_readlink(f"/sys/class/net/{name}/device/driver")) or None,
            bond=_bond(name) if link.kind == "bond" and system != "FreeBSD" else None,
        )
        for name, link in links.items()
    }


def find_route(address: str, system: str) -> facts.Route:
    """Return how an address is reached."""
    if system == "FreeBSD":
        return facts.parse_freebsd_route(run(["route", "-n", "get", address]).out)
    return facts.parse_route_get(run(["ip", "-j", "route", "get", address]).out)


def find_connection(links: Links, system: str) -> AnsibleConnection:
    """Return how this host is reached."""
    words = _ssh_connection().split()
    if len(words) != 4:
        return AnsibleConnection()
    peer, address = words[0], words[2]
    link = facts.link_of_address(links, address) or find_route(peer, system).dev
    return AnsibleConnection(link, address, peer)


def _ssh_connection() -> str:
    """Find sshd's SSH_CONNECTION, which sudo drops, in this process or those above it."""
    if os.environ.get("SSH_CONNECTION"):
        return os.environ["SSH_CONNECTION"]
    pid = os.getppid()
    while pid > 1:
        for item in _read_bytes(f"/proc/{pid}/environ").split(b"\0"):
            if item.startswith(b"SSH_CONNECTION="):
                return item.split(b"=", 1)[1].decode(errors="replace")
        status = re.search(r"^PPid:\s*(\d+)", _read(f"/proc/{pid}/status"), re.MULTILINE)
        pid = int(status[1]) if status else 0
    return ""


def _evidence(system: str, links: Links) -> tuple[managers.Evidence, dict[str, ManagerFacts]]:
    """Read what tells who manages which link, and what each manager is like here."""
    # A networkd that was stopped leaves its states in /run.
    networkd_runs = _networkd_runs()
    networkctl = managers.parse_networkctl(_networkctl(links)) if networkd_runs else {}
    nm_devices = (
        run(["nmcli", "-t", "-f", "DEVICE,STATE,CONNECTION,CON-UUID", "device"]) if find_program("nmcli") else None
    )
    nm_runs = bool(nm_devices and nm_devices.code == 0)
    nmcli = managers.parse_nmcli_devices(nm_devices.out) if nm_devices and nm_runs else {}
    files = managers.parse_nmcli_files(run(["nmcli", "-t", "-f", "UUID,FILENAME", "connection"]).out) if nm_runs else {}
    interfaces, includes = _interfaces()
    ifcfg = _ifcfg()
    evidence = managers.Evidence(
        networkctl,
        {name: device._replace(mtu=_profile_mtu(device.uuid)) for name, device in nmcli.items()},
        files,
        interfaces,
        {name: f"/etc/sysconfig/network-scripts/ifcfg-{name}" for name in ifcfg},
        system == "FreeBSD",
    )
    here: dict[str, ManagerFacts] = {
        "netplan": {
            "present": bool(find_program("netplan")),
            "configured": bool(glob.glob("/etc/netplan/*.yaml")) and (networkd_runs or nm_runs),
        },
        "networkd": {
            "present": bool(find_program("networkctl")),
            "configured": networkd_runs and os.path.isdir(_NETWORKD_LINKS),
            "running": networkd_runs,
        },
        "networkmanager": {"present": bool(find_program("nmcli")), "configured": nm_runs, "running": nm_runs},
        "ifupdown": {
            "present": bool(find_program("ifup")) and os.path.isdir("/etc/network"),
            "configured": bool(set(interfaces) - {"lo"}) or os.path.exists("/etc/network/interfaces"),
            "suffix": managers.include_suffix(includes),
            "ifenslave": os.path.exists("/etc/network/if-pre-up.d/ifenslave"),
        },
        "ifcfg": {
            "present": os.path.isdir("/etc/sysconfig/network-scripts"),
            "configured": bool(set(ifcfg) - {"lo"}),
            "files": ifcfg,
        },
        "freebsd": {
            "present": system == "FreeBSD",
            "blocked": [p for p in ("/etc/rc.conf.d/netif", "/etc/rc.conf.d/routing") if os.path.isfile(p)],
        },
    }
    return evidence, here


def _networkd_runs() -> bool:
    if not (find_program("networkctl") and find_program("systemctl")):
        return False
    return run(["systemctl", "is-active", "--quiet", "systemd-networkd.service"]).code == 0


def _networkctl(links: Links) -> str:
    """One by one: ``--all`` leaves the network file out in some versions."""
    if not os.path.isdir(_NETWORKD_LINKS):
        return ""
    return "\n".join(run(["networkctl", "--no-pager", "--full", "--lines=0", "status", name]).out for name in links)


def _profile_mtu(uuid: str) -> str:
    return run(["nmcli", "-g", "802-3-ethernet.mtu", "connection", "show", uuid]).out.strip() if uuid else ""


def _interfaces() -> tuple[dict[str, managers.Stanzas], list[tuple[str, str]]]:
    """Read ifupdown's files, those that it includes as well."""
    main = "/etc/network/interfaces"
    stanzas, includes = managers.parse_interfaces(_read(main))
    found = {name: managers.Stanzas(main, methods) for name, methods in stanzas.items()}
    for word, pattern in includes:
        if not pattern.startswith("/"):
            pattern = f"/etc/network/{pattern}"
        for path in sorted(glob.glob(f"{pattern.rstrip('/')}/*" if word == "source-directory" else pattern)):
            text = _read(path)
            for name, methods in managers.parse_interfaces(text)[0].items():
                found.setdefault(name, managers.Stanzas(path, methods, owner_of(text) is not None))
    return found, includes


def _ifcfg() -> dict[str, str]:
    start = "/etc/sysconfig/network-scripts/ifcfg-"
    return {
        path[len(start) :]: _read(path) for path in sorted(glob.glob(f"{start}*")) if not path.endswith(("~", ".bak"))
    }


def _own_files() -> dict[str, OwnFile]:
    found = {}
    for pattern in _OWN:
        for path in sorted(glob.glob(pattern)):
            text = _read(path)
            entry = owner_of(text)
            if entry:
                found[path] = OwnFile(entry, made_by(text))
    return found


def _cloud() -> str | None:
    firmware = {name: _read(f"/sys/class/dmi/id/{name}").strip() for name in _DMI}
    return facts.cloud_of(firmware, _read("/run/cloud-init/cloud-id"))


def _bond(name: str) -> dict[str, str]:
    """Read a bond's parameters: ``active-backup 1`` is a name and its number."""
    values = {key: _read(f"/sys/class/net/{name}/bonding/{key}").split() for key in _BOND_FILES}
    return {key: words[0] for key, words in values.items() if words}


def _speed(name: str) -> int | None:
    """Return the speed in Mbit/s, or None if the link is down or has none."""
    with contextlib.suppress(ValueError):
        speed = int(_read(f"/sys/class/net/{name}/speed") or -1)
        return speed if speed > 0 else None
    return None


def _readlink(path: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return ""


def _read(path: str) -> str:
    return _read_bytes(path).decode(errors="replace")


def _read_bytes(path: str) -> bytes:
    with contextlib.suppress(OSError), open(path, "rb") as opened:
        return opened.read()
    return b""
