# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find out what a host has and what stands at a path. Private to the collection.

Everything here only reads. The result is plain data; what follows from it is decided by the plan on the control node.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import pwd
import re
import socket
import ssl as ssl_library
import stat
import sys
import time
from typing import Any, Sequence

from .._core.files import nearest_existing
from .._core.subprocesses import find_program, run_command
from .._methods.detect_programs import SSH_METHODS, look_at_programs
from .._tree.walk import walk
from .state import JobFolder

_RSYNCD_CONFIGS = ("/etc/rsyncd.conf", "/usr/local/etc/rsync/rsyncd.conf", "/usr/local/etc/rsyncd.conf")


def probe(request: dict[str, Any]) -> dict[str, Any]:
    """Describe this host as one end of a transfer.

    ``request`` has ``side``, ``path`` (absolute), ``id`` of the transfer, ``methods`` whose programs are looked at,
    ``ssh_ports`` to look for an sshd at where one of them uses ssh, and optionally ``child`` (a name inside the path to
    describe as well), ``rsyncd_module``, ``link_dest`` (paths) and ``owners`` (names of ``users`` and ``groups``).
    """
    path = describe_with_child(request)
    if request["side"] == "source" and path["type"] == "directory":
        path["measured"] = measure(os.fsencode(path["real"]))
    elif request["side"] == "source" and path["type"] == "file":
        path["measured"] = {"entries": 1, "allocated": os.stat(path["real"]).st_blocks * 512, "complete": True}
    folder = JobFolder(request["id"], request["side"])
    status = folder.status
    own_addresses = addresses()
    ssh_addresses = ["127.0.0.1", *own_addresses] if set(request["methods"]) & set(SSH_METHODS) else []
    return {
        "python": list(sys.version_info[:3]),
        "system": os.uname().sysname,
        "user": getpass.getuser(),
        "uid": os.geteuid(),
        "now_ns": time.time_ns(),
        "machine": _machine(),
        "cores": os.cpu_count() or 1,
        "aes": _has_aes(),
        "tls13": bool(getattr(ssl_library, "HAS_TLSv1_3", False)),
        "zstd": _has_zstd(request["methods"]),
        "addresses": own_addresses,
        "link_mbit": _link_speed(),
        "path": path,
        "selinux": os.path.exists("/sys/fs/selinux/enforce"),
        "owners": numbers_of(request.get("owners") or {}),
        "no_folders": [other for other in request.get("link_dest") or () if not os.path.isdir(other)],
        "methods": request["methods"],
        "programs": look_at_programs(request["methods"]),
        "sshd": _sshd(request["ssh_ports"], ssh_addresses),
        "rsyncd_module": _rsyncd_module(request.get("rsyncd_module")),
        "job": {
            "running": folder.is_running(),
            "request": folder.request,
            "status": status,
        },
    }


def _machine() -> str:
    """Name what two inventory hosts share where they are one system with one file tree; no secret, only equality."""
    parts = []
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            parts.append(stream.read().strip())
    except OSError:
        parts.append(os.uname().nodename)
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/mnt"))
    return " ".join(parts)


def _has_aes() -> bool:
    """Whether the processor has AES instructions, as far as the system says (unknown counts as yes)."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            flags = re.search(r"^(?:flags|Features)\s*:(.*)$", stream.read(), re.MULTILINE)
    except OSError:
        return True
    return flags is None or "aes" in flags.group(1).split()


def _has_zstd(methods: Sequence[str]) -> bool:
    if "stream" not in methods:  # the others have programs for it; to load a library for nothing takes time
        return False
    from .._engine.content.zstd import available

    return available()


def addresses() -> list[str]:
    """Give the addresses of this host, the one of its default route first, loopback ones last."""
    found: list[str] = []
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe_socket:
                probe_socket.connect((target, 9))  # sends nothing: only asks which address would be used
                found.append(probe_socket.getsockname()[0])
        except OSError:
            continue
    for argv in (["ip", "-o", "addr", "show"], ["ifconfig", "-a"]):
        for address in re.findall(r"\binet6? (?:addr:)?([0-9a-fA-F.:]+)", run_command(argv)):
            if not address.lower().startswith("fe80"):
                found.append(address)
        if len(found) > 2:
            break
    ordered = list(dict.fromkeys(found))
    return sorted(ordered, key=_is_loopback)


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _link_speed() -> int:
    """Give the speed of the slowest physical interface that is up, in Mbit/s; 0 where the system does not say."""
    speeds = []
    try:
        names = os.listdir("/sys/class/net")
    except OSError:
        return 0
    for name in names:
        try:
            if not os.path.exists(f"/sys/class/net/{name}/device"):
                continue
            with open(f"/sys/class/net/{name}/speed", encoding="ascii") as stream:
                speeds.append(int(stream.read()))
        except (OSError, ValueError):
            continue
    return min((speed for speed in speeds if speed > 0), default=0)


def describe_with_child(request: dict[str, Any]) -> dict[str, Any]:
    """Describe ``path``, and as ``child`` what has that name inside it, where one is given."""
    path = describe_path(request["path"])
    if request.get("child"):
        path["child"] = describe_path(os.path.join(request["path"], request["child"]))
    return path


def describe_path(path: str) -> dict[str, Any]:
    """Say what stands at an absolute path: its real path, type, the space around it, and whether it can be used."""
    given = os.fsencode(path).rstrip(b"/") or b"/"  # with the slash, a file would be "not a directory"
    real = os.path.realpath(given)
    found: dict[str, Any] = {"given": path, "real": os.fsdecode(real), "type": "missing", "empty": True}
    try:
        mode = os.stat(given).st_mode
        found["type"] = "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"
    except FileNotFoundError:
        if os.path.islink(given):
            found["type"] = "dangling"
    except OSError as error:
        found.update(type="unreachable", reason=error.strerror)
    if found["type"] == "missing":
        found["no_way"] = no_way(path)
    existing = nearest_existing(real)
    found["existing"] = os.fsdecode(existing)
    found["existing_is_directory"] = os.path.isdir(existing)
    found["readable"] = os.access(existing, os.R_OK | os.X_OK if os.path.isdir(existing) else os.R_OK)
    folder = existing if found["existing_is_directory"] else os.path.dirname(existing)  # files are replaced
    found["writable"] = os.access(folder, os.W_OK | os.X_OK)
    if found["type"] == "directory":
        try:
            with os.scandir(real) as entries:
                found["empty"] = next(entries, None) is None
        except OSError as error:
            found["reason"] = error.strerror
    try:
        space = os.statvfs(existing)
        found.update(
            free_bytes=space.f_bavail * space.f_frsize,
            free_inodes=space.f_favail if space.f_files else -1,  # -1: this file system has no such limit
            read_only=bool(space.f_flag & os.ST_RDONLY),
        )
    except OSError:
        pass
    return found


def no_way(path: str) -> str:
    """Return the part of a path that is no directory, though ``..`` behind it would lead back; empty where none is.

    Without that directory nobody can say what the path means: it may become a symlink.
    """
    names = path.split("/")
    for at in range(len(names) - 1, 0, -1):
        before = "/".join(names[:at])
        if names[at] == ".." and before and not os.path.isdir(before):
            return before
    return ""


def measure(root: bytes, seconds: float = 0.5) -> dict[str, Any]:
    """Count a tree's entries and allocated bytes for ``seconds``; ``complete`` says whether that was enough."""
    deadline = time.monotonic() + seconds
    entries = allocated = 0
    for entry in walk(root, on_error=lambda _path, _error: None):
        entries += 1
        allocated += entry.blocks * 512 // (entry.nlink if entry.link_id else 1)
        if entries % 256 == 0 and time.monotonic() > deadline:
            return {"entries": entries, "allocated": allocated, "complete": False}
    return {"entries": entries, "allocated": allocated, "complete": True}


def _sshd(ports: list[int], own_addresses: list[str]) -> dict[str, Any]:
    """Say whether the system's sshd answers on this host, and what it is configured to; neither without addresses."""
    found: dict[str, Any] = {"listening": [], "config": {}, "home": pwd.getpwuid(os.geteuid()).pw_dir}
    if not own_addresses:
        return found
    from .._methods.ssh.sshd_config import parse_sshd_config

    found["listening"] = [port for port in dict.fromkeys(ports) if _speaks_ssh(port, own_addresses)]
    sshd = find_program("sshd")
    if sshd and os.geteuid() == 0:
        text = run_command([sshd, "-T", "-C", f"user={getpass.getuser()},host=peer,addr=192.0.2.1"])
        found["config"] = parse_sshd_config(text)
    return found


def _speaks_ssh(port: int, own_addresses: list[str]) -> bool:
    for address in own_addresses:
        try:
            with socket.create_connection((address, port), timeout=1) as connection:
                connection.settimeout(2)
                if connection.recv(4) == b"SSH-":
                    return True
        except OSError:
            continue
    return False


def numbers_of(wanted: dict[str, list[str]]) -> dict[str, dict[str, int | None]]:
    """Return the numbers of ``users`` and ``groups`` by name; None where nobody has the name."""
    if not wanted:  # which is nearly always so
        return {}
    from .._tree.accounts import group_id, user_id

    return {
        kind: {name: number_of(name) for name in wanted.get(kind, ())}
        for kind, number_of in (("users", user_id), ("groups", group_id))
    }


def _rsyncd_module(name: str | None) -> dict[str, Any] | None:
    """Give the options of a module of the rsync daemon that is configured here; None where there is none."""
    if not name:
        return None
    from .._rsyncd.conf import load_from_disk

    for path in _RSYNCD_CONFIGS:
        try:
            module = load_from_disk(path).module(name)
        except OSError:
            continue
        if module is not None:
            return dict(module.named(), config=path)
    return None
