# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths and devices that a systemd unit must open for the modules. Pure. Source: systemd.exec(5).

A path is opened only where the unit closes it: a path in ReadWritePaths is mounted upon itself in the daemon's view,
and a file system that is mounted there later stays hidden from the daemon.
"""

from __future__ import annotations

import os
import re
from typing import Iterable, Mapping, NamedTuple, Sequence, TypedDict, cast

from .check import may_write, varies
from .identity import ROOT
from .options import Values

# What the unit of most distributions closes: rsync's own example. It is taken where no package is installed yet.
ASSUMED_UNIT = "[Service]\nProtectSystem=full\nPrivateDevices=on\n"

_LISTS = frozenset(["ReadWritePaths", "ReadOnlyPaths", "InaccessiblePaths", "ReadWriteDirectories"])
_FULL = ("/usr", "/boot", "/efi", "/etc")
_SYSTEM = {"yes": _FULL[:3], "true": _FULL[:3], "1": _FULL[:3], "on": _FULL[:3], "full": _FULL, "strict": ("/",)}
_NOT_STRICT = ("/dev", "/proc", "/sys")  # what ProtectSystem=strict leaves alone
_HOMES = ("/home", "/root", "/run/user")
_TEMPORARY = ("/tmp", "/var/tmp")
_TRUE = frozenset(["yes", "true", "1", "on"])


class UnitSettings(TypedDict, total=False):
    """The settings of a unit's [Service] that decide what a daemon reaches."""

    ProtectSystem: str
    ProtectHome: str
    PrivateTmp: str
    PrivateDevices: str
    ReadWritePaths: list[str]
    ReadWriteDirectories: list[str]  # the same, by its old name
    ReadOnlyPaths: list[str]
    InaccessiblePaths: list[str]


def unit_settings(text: str, without: str = "") -> UnitSettings:
    """Read what ``systemctl cat UNIT`` prints: a setting's last value, or all elements of a list of paths.

    ``without`` is the path of a drop-in that is left out: the role's own.
    """
    words: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    section, skipped, waiting = "", False, ""
    for raw in text.splitlines():
        # Each file is announced by a comment with its path, at the start of a line.
        if re.match(r"^# /\S+\.(?:service|socket|conf)$", raw) and not waiting:
            skipped, section = raw[2:] == without, ""
            continue
        line = (waiting + raw.strip()).strip()
        waiting = ""
        if line.endswith("\\"):
            waiting = line[:-1] + " "
            continue
        if not line or line[0] in "#;" or skipped:
            continue
        if line.startswith("["):
            section = line.strip("[]")
            continue
        key, equals, value = line.partition("=")
        key, value = key.strip(), value.strip()
        if section != "Service" or not equals:
            continue
        if key not in _LISTS:
            words[key] = value
        elif not value:
            lists[key] = []
        else:
            lists.setdefault(key, []).extend(word.strip('"').lstrip("+-") for word in value.split())
    return cast(UnitSettings, {**words, **lists})


def needed_paths(modules: Iterable[Values], daemon: Values) -> dict[str, bool]:
    """Return what the daemon must reach → whether it must write there. Values of modules are the effective ones."""
    needed: dict[str, bool] = {}

    def need(path: str, write: bool) -> None:
        if path and not varies(path):
            path = os.path.normpath(path.replace("/./", "/"))
            needed[path] = needed.get(path, False) or write

    for values in modules:
        need(values["path"], may_write(values))
        for file in (values.get("log_file", ""), values.get("lock_file", "")):
            need(os.path.dirname(file), True)
        for file in (values.get("secrets_file", ""), values.get("exclude_from", ""), values.get("include_from", "")):
            need(file, False)
    for file in (daemon.get("log_file", ""), daemon.get("pid_file", "")):
        need(os.path.dirname(file), True)
    need(daemon.get("motd_file", ""), False)
    return needed


def makes_devices(modules: Iterable[Values]) -> bool:
    """Return whether a module makes the device nodes that a client sends: it writes as root, without fake super."""
    return any(
        may_write(values)
        and values.get("uid") in ROOT
        and not values.get("fake_super")
        and not {"devices", "D"} & set(values.get("refuse_options", ()))
        for values in modules
    )


def opened(settings: UnitSettings, needed: Mapping[str, bool], devices: bool) -> dict[str, list[str]]:
    """Return the settings that a drop-in must make, in order; empty if the unit closes nothing that is needed."""
    wanted: dict[str, list[str]] = {}
    writable = [path for path, write in needed.items() if write]
    system = str(settings.get("ProtectSystem", "no")).lower()
    home = str(settings.get("ProtectHome", "no")).lower()
    if "/" in writable and system in _SYSTEM:
        wanted["ProtectSystem"] = ["no"]
        system = "no"
    shut_home = home in _TRUE or home == "tmpfs"
    reaches_home = [path for path in needed if _touch(path, _HOMES)]
    if shut_home and reaches_home:
        wanted["ProtectHome"] = ["read-only"]
    if home != "no" and any(path == "/" for path in writable):
        wanted["ProtectHome"] = ["no"]
        home = "no"
    own_tmp = str(settings.get("PrivateTmp", "no")).lower() in _TRUE | {"disconnected"}
    if own_tmp and any(_touch(path, _TEMPORARY) for path in needed):
        wanted["PrivateTmp"] = ["no"]
    own_devices = str(settings.get("PrivateDevices", "no")).lower() in _TRUE
    if own_devices and (devices or any(_below(path, "/dev") for path in needed)):
        wanted["PrivateDevices"] = ["no"]
    closed = [root for root in _SYSTEM.get(system, ()) if root]
    if home in _TRUE | {"tmpfs", "read-only"}:
        closed += _HOMES
    closed += settings.get("ReadOnlyPaths", [])
    open_already = [*settings.get("ReadWritePaths", []), *settings.get("ReadWriteDirectories", [])]
    paths = [
        path
        for path in sorted(writable)
        if path != "/"
        and any(_below(path, root) for root in closed if root != "/" or not _below_any(path))
        and not any(_below(path, root) for root in open_already)
    ]
    paths = [path for path in paths if not any(path != other and _below(path, other) for other in paths)]
    if paths:
        wanted["ReadWritePaths"] = [_quoted(path) for path in paths]
    return wanted


def shut_paths(settings: UnitSettings, needed: Mapping[str, bool]) -> list[str]:
    """Return what is needed and lies in InaccessiblePaths, which a drop-in cannot open one by one."""
    return [path for path in needed for root in settings.get("InaccessiblePaths", []) if _below(path, root)]


def _quoted(path: str) -> str:
    """Write a path for a unit. A leading - lets the unit start where the path is missing; % begins a specifier."""
    text = "-" + path.replace("\\", "\\\\").replace("%", "%%").replace('"', '\\"')
    return f'"{text}"' if re.search(r"[\s\"\\';]", path) else text


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _touch(path: str, roots: Iterable[str]) -> bool:
    """Return whether a path is one of these, inside of one, or around one."""
    return any(_below(one, other) for root in roots for one, other in ((path, root), (root, path)))


def _below_any(path: str) -> bool:
    return any(_below(path, root) for root in _NOT_STRICT)


class DropIn(NamedTuple):
    """What a drop-in says, and which needed paths it cannot open."""

    settings: list[str]
    shut: list[str]


def plan_drop_in(unit: str, modules: Sequence[Values], daemon: Values, without: str = "") -> DropIn:
    """Return the drop-in that opens what the modules need.

    ``unit`` is what ``systemctl cat`` prints of the daemon's unit, and ``without`` the path of a drop-in that is left
    out.
    """
    settings = unit_settings(unit, without)
    needed = needed_paths(modules, daemon)
    keys = opened(settings, needed, makes_devices(modules))
    return DropIn([f"{key}={' '.join(values)}" for key, values in keys.items()], shut_paths(settings, needed))
