# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that one run of the role will do to a host, decided before anything is done.

``make_plan`` says which files there shall be; ``make_commands`` what to run once it is known which of them changed.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._network.commands import boot_commands, restore_commands
from ansible_collections.longhaul.fleet.plugins.module_utils._network.mtu import mtu_steps

from . import render_freebsd, render_ifcfg, render_ifupdown, render_netplan, render_networkd, render_networkmanager
from .apply_commands import apply_commands, renderer_of
from .files import File
from .host_problems import problems_on_host
from .interfaces import Bond, Entry, parse_links
from .manager_problems import manager_problems

_Renderer = Callable[[Entry, Mapping[str, Any], str], Sequence[File]]
RENDERERS: dict[str, _Renderer] = {
    "netplan": render_netplan.render,
    "networkd": render_networkd.render,
    "networkmanager": render_networkmanager.render,
    "ifupdown": render_ifupdown.render,
    "ifcfg": render_ifcfg.render,
    "freebsd": render_freebsd.render,
}


def make_plan(
    raw: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    manager: str = "auto",
    edit_existing: bool = False,
    header: str = "",
) -> dict[str, Any]:
    """Give ``problems`` (with any, nothing else is to be used), ``files``, ``absent``, ``links``, ``save`` ...

    ``raw`` is ``nic_links``, ``facts`` what nic_info returned, ``header`` a comment for the top of each file. Files are
    dicts with path, content, mode and entry. ``links`` are all that the change can affect, ``made`` those
    that it makes, ``dropped`` those of ours that are not wanted any more.
    """
    entries, problems = parse_links(raw)
    if problems:
        return {"problems": problems}
    problems = problems_on_host(entries, facts)
    chosen: dict[str, str] = {}
    for entry in entries:
        if entry.present:
            name, more = _manager_of(entry, facts, manager)
            problems += more
            if name:
                chosen[entry.name] = name
                problems += manager_problems(name, entry, facts, edit_existing)
    if problems:
        return {"problems": list(dict.fromkeys(problems))}
    files = [file for entry in entries if entry.present for file in RENDERERS[chosen[entry.name]](entry, facts, header)]
    wanted_paths = {file.path for file in files}
    listed = {entry.name for entry in entries}
    ours = facts["own_files"]
    absent = sorted(path for path, data in ours.items() if data["entry"] in listed and path not in wanted_paths)
    devices = {device.name: device for entry in entries for device in entry.devices}
    dropped = sorted(
        name
        for data in ours.values()
        if data["entry"] in listed
        for name in data["makes"]
        if name not in devices and name in facts["links"]
    )
    removed = [entry.name for entry in entries if not entry.present]
    return {
        "problems": [],
        "files": [vars(file) for file in files],
        "absent": absent,
        "save": sorted({*wanted_paths, *absent}),
        "managers": chosen,
        "mtus": {device.name: device.mtu for device in devices.values() if device.mtu},
        "links": sorted(_affected({*devices, *dropped, *removed}, facts)),
        "made": sorted(name for name, device in devices.items() if device.kind in ("bond", "vlan")),
        "dropped": list(dict.fromkeys(dropped)),
        "mtu_only": all(device.mtu_only for device in devices.values()),
        "live": _live(entries, facts, list(dict.fromkeys(dropped))),
        "installs_ifenslave": _needs_ifenslave(entries, chosen, facts),
    }


def make_commands(
    raw: Sequence[Mapping[str, Any]], plan: Mapping[str, Any], facts: Mapping[str, Any], changed: Sequence[str]
) -> dict[str, Any]:
    """Give the commands (argv lists) ``apply``, ``restore`` and ``boot``, for the paths that will be changed."""
    entries = {entry.name: entry for entry in parse_links(raw)[0]}
    owners = {file["path"]: file["entry"] for file in plan["files"]}
    owners.update({path: facts["own_files"][path]["entry"] for path in plan["absent"]})
    touched = {owners[path] for path in changed if path in owners}
    touched |= {entry.name for entry in entries.values() if _unmade(entry, facts)}
    rebuilt = _rebuilt(entries.values(), facts)
    apply = [["ip", "link", "delete", "dev", name] for name in _top_first([*plan["dropped"], *rebuilt], facts)]
    if facts["system"] == "FreeBSD":
        apply = [["ifconfig", command[-1], "destroy"] for command in apply]
    apply += mtu_steps(plan["mtus"], facts["links"], facts["system"])
    restore: list[list[str]] = []
    boot: list[list[str]] = []
    fallback = _only(plan["managers"].values()) or facts["default_manager"]
    for manager in sorted({plan["managers"].get(name, fallback) for name in touched} - {None}):
        names = [name for name in touched if plan["managers"].get(name, fallback) == manager]
        devices = [device for name in sorted(names) for device in entries[name].devices]
        paths = [path for path in changed if owners.get(path) in names and path not in plan["absent"]]
        apply += apply_commands(manager, devices, facts, paths)
        simple = all(device.mtu_only for device in devices) and bool(devices)
        renderer = renderer_of(devices, facts)
        there = [device.name for device in devices if device.name in facts["links"]]
        restore += [one for one in restore_commands(manager, there, simple, renderer) if one not in restore]
        boot += boot_commands(manager)
    return {"apply": apply, "restore": restore, "boot": boot}


def _manager_of(entry: Entry, facts: Mapping[str, Any], given: str) -> tuple[str | None, list[str]]:
    """Give the one manager of an entry's links, or say why there is none."""
    if given != "auto":
        return given, []
    found = {}
    for device in entry.devices:
        name = (facts["links"].get(device.name) or {}).get("manager")
        if name:
            found[device.name] = name
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name} by {manager}" for name, manager in sorted(found.items()))
        return None, [
            f"{entry.name}: its links are managed by several programs ({said}), which would work against each other; "
            "give them to one of them, or say with nic_manager which one shall have them"
        ]
    manager = next(iter(found.values()), None) or facts["default_manager"]
    if not manager:
        return None, [
            f"{entry.name}: no program was found that manages it, so a setting would be lost at the next boot; say "
            f"with nic_manager which one shall ({', '.join(RENDERERS)})"
        ]
    return manager, []


def _affected(names: set[str], facts: Mapping[str, Any]) -> set[str]:
    """Add what hangs together with links: an MTU that is lowered pulls down what is on top."""
    found = set(names)
    while True:
        more = {
            other
            for name in found
            for link in [facts["links"].get(name) or {}]
            for other in (*link.get("children", ()), *link.get("ports", ()), link.get("master"))
            if other
        } - found
        if not more:
            return found
        found |= more


def _live(entries: Sequence[Entry], facts: Mapping[str, Any], dropped: Sequence[str]) -> list[str]:
    """Say what differs on the running host, whatever its files say."""
    said = [f"{name}: it is not wanted any more, and is there" for name in dropped]
    for entry in entries:
        for device in entry.devices:
            link = facts["links"].get(device.name)
            if link is None:
                said.append(f"{device.name}: it is not there yet")
                continue
            if device.mtu and link["mtu"] != device.mtu:
                said.append(f"{device.name}: MTU {link['mtu']}, wanted {device.mtu}")
            if device.master and link["master"] != device.master:
                said.append(f"{device.name}: it is no port of {device.master}")
            has = [one["address"] for one in link["addresses"]]
            said += [f"{device.name}: it has no address {one}" for one in device.addresses if one not in has]
    said += [f"{name}: its parameters differ, so it is built anew" for name in _rebuilt(entries, facts)]
    return said


def _unmade(entry: Entry, facts: Mapping[str, Any]) -> bool:
    """Whether something of an entry is missing on the running host that only its manager can make."""
    for device in entry.devices:
        link = facts["links"].get(device.name)
        if link is None or (device.master and link["master"] != device.master):
            return True
        has = [one["address"] for one in link["addresses"]]
        if any(address not in has for address in device.addresses):
            return True
    return False


def _rebuilt(entries: Any, facts: Mapping[str, Any]) -> list[str]:
    """Give the bonds that run with other parameters: most can be set only when a bond is made."""
    return [
        device.name
        for entry in entries
        for device in entry.devices
        if device.bond and _differs(device.bond, facts["links"].get(device.name) or {})
    ]


def _differs(bond: Bond, link: Mapping[str, Any]) -> bool:
    there = link.get("bond") or {}
    return any(
        getattr(bond, key) is not None and key in there and str(getattr(bond, key)) != str(there[key])
        for key in ("mode", "miimon", "primary", "lacp_rate", "xmit_hash_policy", "min_links")
    )


def _top_first(names: Sequence[str], facts: Mapping[str, Any]) -> list[str]:
    """A VLAN goes before the bond that it is on."""
    return sorted(dict.fromkeys(names), key=lambda name: facts["links"].get(name, {}).get("parent") is None)


def _needs_ifenslave(entries: Sequence[Entry], chosen: Mapping[str, str], facts: Mapping[str, Any]) -> bool:
    has = facts["managers"]["ifupdown"].get("ifenslave", False)
    return not has and any(
        chosen.get(entry.name) == "ifupdown" and entry.present and entry.top.bond for entry in entries
    )


def _only(names: Any) -> str | None:
    found = set(names)
    return found.pop() if len(found) == 1 else None
