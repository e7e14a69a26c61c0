# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that one run of the role will do to a host, decided before anything is done.

``make_plan`` says which files there should be; ``make_commands`` what to run once it is known which of them changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Sequence

from ..commands import restore_commands
from ..host import Host
from ..link import Link
from ..mtu import mtu_steps
from . import render_freebsd, render_ifcfg, render_ifupdown, render_netplan, render_networkd, render_networkmanager
from .apply_commands import apply_commands, renderer_of
from .files import File
from .interfaces import Bond, LinkEntry, parse_links
from .problems import manager_problems, problems_on_host

_Renderer = Callable[[LinkEntry, Host, str], Sequence[File]]
RENDERERS: dict[str, _Renderer] = {
    "netplan": render_netplan.render,
    "networkd": render_networkd.render,
    "networkmanager": render_networkmanager.render,
    "ifupdown": render_ifupdown.render,
    "ifcfg": render_ifcfg.render,
    "freebsd": render_freebsd.render,
}


@dataclass(frozen=True)
class NicPlan:
    """Changes of one run to a host. With ``problems`` nothing is done, and the rest is empty."""

    problems: Sequence[str] = ()
    entries: Sequence[LinkEntry] = ()
    files: Sequence[File] = ()
    absent: Sequence[str] = ()  # paths to remove
    save: Sequence[str] = ()  # paths that the checkpoint keeps
    managers: Mapping[str, str] = field(default_factory=dict)  # by item of nic_links
    mtus: Mapping[str, int] = field(default_factory=dict)  # by link
    links: Sequence[str] = ()  # all that the change can affect
    made: Sequence[str] = ()  # links that it makes
    dropped: Sequence[str] = ()  # links of the role that are not wanted any more
    mtu_only: bool = False
    live: Sequence[str] = ()  # sentences: what differs on the running host
    installs_ifenslave: bool = False


def make_plan(
    raw: Sequence[Mapping[str, Any]], host: Host, manager: str = "auto", edit_existing: bool = False, header: str = ""
) -> NicPlan:
    """Decide what is done, or say why nothing is. ``raw`` is ``nic_links``, ``header`` a comment for each file."""
    entries, problems = parse_links(raw)
    if problems:
        return NicPlan(problems)
    problems = problems_on_host(entries, host)
    chosen: dict[str, str] = {}
    for entry in entries:
        if entry.present:
            name, more = _manager_of(entry, host, manager)
            problems += more
            if name:
                chosen[entry.name] = name
                problems += manager_problems(name, entry, host, edit_existing)
    if problems:
        return NicPlan(list(dict.fromkeys(problems)))
    files = [file for entry in entries if entry.present for file in RENDERERS[chosen[entry.name]](entry, host, header)]
    wanted_paths = {file.path for file in files}
    listed = {entry.name for entry in entries}
    ours = host.own_files
    absent = sorted(path for path, own in ours.items() if own.entry in listed and path not in wanted_paths)
    devices = {device.name: device for entry in entries for device in entry.devices}
    gone = sorted(
        name
        for own in ours.values()
        if own.entry in listed
        for name in own.makes
        if name not in devices and name in host.links
    )
    dropped = list(dict.fromkeys(gone))
    removed = [entry.name for entry in entries if not entry.present]
    return NicPlan(
        entries=entries,
        files=files,
        absent=absent,
        save=sorted({*wanted_paths, *absent}),
        managers=chosen,
        mtus={device.name: device.mtu for device in devices.values() if device.mtu},
        links=sorted(_affected({*devices, *dropped, *removed}, host)),
        made=sorted(name for name, device in devices.items() if device.kind in ("bond", "vlan")),
        dropped=dropped,
        mtu_only=all(device.mtu_only for device in devices.values()),
        live=_live(entries, host, dropped),
        installs_ifenslave=_needs_ifenslave(entries, chosen, host),
    )


def make_commands(plan: NicPlan, host: Host, changed: Sequence[str]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the commands that apply a plan without problems where these paths change, and those that undo it."""
    entries = {entry.name: entry for entry in plan.entries}
    owners = {file.path: file.entry for file in plan.files}
    owners.update({path: host.own_files[path].entry for path in plan.absent})
    touched = {owners[path] for path in changed if path in owners}
    touched |= {entry.name for entry in entries.values() if _unmade(entry, host)}
    rebuilt = _rebuilt(entries.values(), host)
    apply = [["ip", "link", "delete", "dev", name] for name in _top_first([*plan.dropped, *rebuilt], host)]
    if host.system == "FreeBSD":
        apply = [["ifconfig", command[-1], "destroy"] for command in apply]
    apply += mtu_steps(plan.mtus, host.links, host.system)
    restore: list[list[str]] = []
    fallback = _only(plan.managers.values()) or host.default_manager
    manager_of = {name: plan.managers.get(name, fallback) for name in touched}
    for manager in sorted({one for one in manager_of.values() if one}):
        names = [name for name in touched if manager_of[name] == manager]
        devices = [device for name in sorted(names) for device in entries[name].devices]
        paths = [path for path in changed if owners.get(path) in names and path not in plan.absent]
        apply += apply_commands(manager, devices, host, paths)
        simple = all(device.mtu_only for device in devices) and bool(devices)
        renderer = renderer_of(devices, host)
        there = [device.name for device in devices if device.name in host.links]
        restore += [one for one in restore_commands(manager, there, simple, renderer) if one not in restore]
    return apply, restore


def _manager_of(entry: LinkEntry, facts: Host, given: str) -> tuple[str | None, list[str]]:
    """Return the one manager of an entry's links, or say why there is none."""
    if given != "auto":
        return given, []
    found = {}
    for device in entry.devices:
        name = facts.links[device.name].manager if device.name in facts.links else None
        if name:
            found[device.name] = name
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name} by {manager}" for name, manager in sorted(found.items()))
        return None, [
            f"{entry.name}: its links are managed by several programs ({said}), which would work against each other; "
            "give them to one of them, or choose one with nic_manager"
        ]
    manager = next(iter(found.values()), None) or facts.default_manager
    if not manager:
        return None, [
            f"{entry.name}: no program was found that manages it, so a setting would be lost at the next boot; say "
            f"with nic_manager which one manages it ({', '.join(RENDERERS)})"
        ]
    return manager, []


def _affected(names: set[str], facts: Host) -> set[str]:
    """Add what hangs together with links: an MTU that is lowered pulls down what is on top."""
    found = set(names)
    while True:
        more = {
            other
            for name in found
            if name in facts.links
            for link in [facts.links[name]]
            for other in (*link.children, *link.ports, link.master)
            if other
        } - found
        if not more:
            return found
        found |= more


def _live(entries: Sequence[LinkEntry], facts: Host, dropped: Sequence[str]) -> list[str]:
    """Return what differs on the running host, whatever its files say."""
    said = [f"{name}: it is not wanted any more, and is there" for name in dropped]
    for entry in entries:
        for device in entry.devices:
            link = facts.links.get(device.name)
            if link is None:
                said.append(f"{device.name}: it is not there yet")
                continue
            if device.mtu and link.mtu != device.mtu:
                said.append(f"{device.name}: MTU {link.mtu}, wanted {device.mtu}")
            if device.master and link.master != device.master:
                said.append(f"{device.name}: it is no port of {device.master}")
            has = [one.address for one in link.addresses]
            said += [f"{device.name}: it has no address {one}" for one in device.addresses if one not in has]
    said += [f"{name}: its parameters differ, so it is rebuilt" for name in _rebuilt(entries, facts)]
    return said


def _unmade(entry: LinkEntry, facts: Host) -> bool:
    """Return whether something of an entry is missing on the running host that only its manager can make."""
    for device in entry.devices:
        link = facts.links.get(device.name)
        if link is None or (device.master and link.master != device.master):
            return True
        has = [one.address for one in link.addresses]
        if any(address not in has for address in device.addresses):
            return True
    return False


def _rebuilt(entries: Iterable[LinkEntry], facts: Host) -> list[str]:
    """Return the bonds that run with other parameters: most can be set only when a bond is made."""
    return [
        device.name
        for entry in entries
        for device in entry.devices
        if device.bond and _differs(device.bond, facts.links.get(device.name))
    ]


def _differs(bond: Bond, link: Link | None) -> bool:
    there = (link.bond if link else None) or {}
    return any(
        getattr(bond, key) is not None and key in there and str(getattr(bond, key)) != str(there[key])
        for key in ("mode", "miimon", "primary", "lacp_rate", "xmit_hash_policy", "min_links")
    )


def _top_first(names: Sequence[str], facts: Host) -> list[str]:
    """A VLAN goes before the bond that it is on."""
    return sorted(dict.fromkeys(names), key=lambda name: name not in facts.links or facts.links[name].parent is None)


def _needs_ifenslave(entries: Sequence[LinkEntry], chosen: Mapping[str, str], facts: Host) -> bool:
    has = facts.managers["ifupdown"].get("ifenslave", False)
    return not has and any(
        chosen.get(entry.name) == "ifupdown" and entry.present and entry.top.bond for entry in entries
    )


def _only(names: Iterable[str]) -> str | None:
    found = set(names)
    return found.pop() if len(found) == 1 else None
