# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find out what a host has and what stands at a path. Private to the collection.

Everything here only reads. The result is plain data; what follows from it is decided by the plan on the control node.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import pwd
import re
import socket
import ssl as ssl_library
import stat
import sys
import time
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from .._core.boot import boot_id
from .._core.disk_full import find_room
from .._core.errors import TransferFailed
from .._core.mounts import device_path
from .._core.subprocesses import find_program, run_command
from .._methods.detect_programs import SSH_METHODS, look_at_programs
from .._model.entry import REGULAR
from .._tree.descent import open_root
from .._tree.dirfd import Root
from .._tree.held_root import describe, open_held
from .._tree.holes import count_holes
from .._tree.resolve import ForeignLink, real_path, resolve
from .._tree.walk import walk
from .state import JobFolder

if TYPE_CHECKING:
    from typing import TypedDict

    from .._methods.detect_programs import Programs
    from .._methods.ssh.sshd_config import SshdConfig
    from .._tree.held_root import ProbedRoot
    from .._tree.resolve import ResolvedPath
    from . import steps
    from .request import Request
    from .state import JobStatus

    class TreeSize(TypedDict):
        """What a tree takes, as far as could be counted."""

        entries: int
        content: int  # bytes of room without holes
        apparent: int  # bytes of room with them
        complete: bool

    class _Path(TypedDict):
        given: str
        real: str
        type: str  # directory, file, other, missing, dangling (a symlink), unreachable or foreign link
        empty: bool  # a directory, or nothing
        existing: str  # the path itself, or what exists above it
        existing_is_directory: bool
        readable: bool
        writable: bool

    class PathFacts(_Path, total=False):
        """What stands at a path, and the space around it."""

        reason: str  # why it is unreachable, not followed, or cannot be listed
        no_way: str  # see there
        device_path: str  # of ``real``, see there
        free_bytes: int
        free_inodes: int  # -1: this file system has no such limit
        read_only: bool
        child: PathFacts
        folder: ProbedRoot  # ``existing``, or the folder that it is in
        measured: TreeSize  # at the source
        time_units: dict[str, int]  # of a directory, where it is to be compared: see TimeUnits

    class Older(TypedDict):
        """What stands at the folders of link_dest."""

        no_folders: list[str]  # that are none
        not_followed: str  # why one of them must not be used; empty if all may

    class EndDescription(TypedDict):
        path: PathFacts
        machine: str  # as a probe has it
        hash_speeds: dict[str, float]
        now_ns: int
        owners: Numbers

    class SshdFacts(TypedDict):
        listening: list[int]  # ports
        config: SshdConfig  # empty if this user may not ask
        home: str

    class JobFacts(TypedDict):
        running: bool
        request: Request
        status: JobStatus

    class _Followed(TypedDict, total=False):
        fingerprint: str  # of the steady facts
        then: list[object]  # results of the steps that followed

    class ProbeFacts(_Followed, Older):
        """A host as one end of a transfer."""

        python: list[int]
        system: str
        user: str
        uid: int
        now_ns: int
        machine: str  # the same for two inventory hosts that are one system
        cores: int
        aes: bool
        tls13: bool
        zstd: bool
        addresses: list[str]
        link_mbit: int  # 0: not known
        path: PathFacts
        selinux: bool
        owners: Numbers
        methods: list[str]  # that were looked at
        programs: Programs
        sshd: SshdFacts
        rsyncd_module: dict[str, str] | None  # its options; with config, the path of the file
        job: JobFacts  # of an earlier run of this transfer

    Numbers = Mapping[str, Mapping[str, "int | None"]]  # of users and groups, by name

_BLOCK, _LARGEST_BLOCK = 512, 4096  # bytes: the unit of st_blocks, and what the last block of a file may take
# What changes all the time: it decides when the transfer began, and whether an empty destination is too small.
_VARYING = ("now_ns", "job", "path")
_VARYING_OF_PATH = ("free_bytes", "free_inodes", "measured", "child")
_RSYNCD_CONFIGS = ("/etc/rsyncd.conf", "/usr/local/etc/rsync/rsyncd.conf", "/usr/local/etc/rsyncd.conf")


def probe(request: steps.Probe) -> ProbeFacts:
    """Describe this host as one end of a transfer."""
    path, older = describe_with_child(request["path"], request.get("child")), _older(request.get("link_dest") or ())
    if request["side"] == "source" and path["type"] == "directory":
        _measure_held(path)
    elif request["side"] == "source" and path["type"] == "file":
        _measure_held_file(path)
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
        "machine": machine(),
        "cores": os.cpu_count() or 1,
        "aes": _has_aes(),
        "tls13": bool(getattr(ssl_library, "HAS_TLSv1_3", False)),
        "zstd": _has_zstd(request["methods"]),
        "addresses": own_addresses,
        "link_mbit": _link_speed(),
        "path": path,
        "selinux": os.path.exists("/sys/fs/selinux/enforce"),
        "owners": numbers_of(request.get("owners") or {}),
        "no_folders": older["no_folders"],
        "not_followed": older["not_followed"],
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


def fingerprint(facts: ProbeFacts) -> str:
    """Return a digest of the facts on which a plan depends. Pure.

    The control node sends back the fingerprint of an earlier probe, with the steps of the plan that it made of it. So a
    transfer that was made before needs no execution for the probe alone. A job that runs, or whose result was not
    collected, gives another one.
    """
    job = facts["job"]
    steady = {
        **{name: value for name, value in facts.items() if name not in _VARYING},
        "path": _steady(facts["path"]),
        "job": bool(job["running"] or job["request"]),
    }
    return hashlib.sha224(json.dumps(steady, sort_keys=True).encode()).hexdigest()


def _steady(path: Mapping[str, Any]) -> Mapping[str, object]:
    found: dict[str, object] = {name: value for name, value in path.items() if name not in _VARYING_OF_PATH}
    if "child" in path:
        found["child"] = _steady(path["child"])
    return found


def machine() -> str:
    """Name what two inventory hosts share where they are one system with one file tree; no secret, only equality."""
    parts = [boot_id() or os.uname().nodename]
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/mnt"))
    return " ".join(parts)


def _has_aes() -> bool:
    """Return whether the processor has AES instructions, as far as the system says (unknown counts as yes)."""
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
    """Return the addresses of this host, the one of its default route first, loopback ones last."""
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
    """Return the speed of the slowest physical interface that is up, in Mbit/s; 0 where the system does not say."""
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


def describe_with_child(path: str, child: str | None) -> PathFacts:
    """Describe a path, and what has the name ``child`` inside it, where one is given."""
    found = describe_path(path)
    if child:
        found["child"] = describe_path(os.path.join(path, child))
    return found


def describe_path(path: str) -> PathFacts:
    """Return what stands at an absolute path: its real path, type, the space around it, and whether it can be used.

    Where a symbolic link on the way is not followed, the type is "foreign link", and nothing is told of where it leads.
    """
    given = os.fsencode(path).rstrip(b"/") or b"/"  # with the slash, a file would be "not a directory"
    try:
        place = resolve(given)
    except ForeignLink as refused:
        return _not_followed(path, str(refused))
    try:
        return _describe_place(path, place)
    finally:
        os.close(place.fd)


def _not_followed(path: str, why: str) -> PathFacts:
    return {
        "given": path,
        "real": path,
        "type": "foreign link",
        "empty": True,
        "existing": path,
        "existing_is_directory": False,
        "readable": False,
        "writable": False,
        "reason": why,
    }


def _describe_place(path: str, place: ResolvedPath) -> PathFacts:
    kind, status = "dangling" if place.dangling else "missing", place.status
    if status is not None:
        kind = "directory" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
    elif place.error is not None:
        kind = "unreachable"
    is_directory = place.existing == place.folder
    at = b"." if is_directory else os.path.basename(place.existing)
    found: PathFacts = {
        "given": path,
        "real": os.fsdecode(place.real),
        "type": kind,
        "empty": True,
        "existing": os.fsdecode(place.existing),
        "existing_is_directory": is_directory,
        "readable": os.access(at, os.R_OK | os.X_OK if is_directory else os.R_OK, dir_fd=place.fd),
        "writable": os.access(b".", os.W_OK | os.X_OK, dir_fd=place.fd),  # of a file, the folder: files are replaced
        "folder": describe(place.folder, place.fd),
    }
    if place.error is not None:
        found["reason"] = place.error.strerror or str(place.error)
    if kind in ("directory", "missing"):
        found["device_path"] = device_path(found["real"])
    if kind == "missing":
        found["no_way"] = no_way(path)
    if kind == "directory":
        try:
            found["empty"] = _is_empty(place.fd)
        except OSError as error:
            found["reason"] = error.strerror or str(error)
    with contextlib.suppress(OSError):
        room = find_room(place.existing)
        found["free_bytes"] = room.free
        found["free_inodes"] = -1 if room.free_inodes is None else room.free_inodes
        found["read_only"] = room.is_read_only
    return found


def _is_empty(folder: int) -> bool:
    fd = open_root(folder)
    try:
        with os.scandir(fd) as entries:
            return next(entries, None) is None
    finally:
        os.close(fd)


def no_way(path: str) -> str:
    """Return the part of a path that is no directory, though ``..`` behind it would lead back; empty if none is.

    Without that directory nobody can say what the path means: it may become a symlink.
    """
    names = path.split("/")
    for at in range(len(names) - 1, 0, -1):
        before = "/".join(names[:at])
        if names[at] == ".." and before and not os.path.isdir(before):
            return before
    return ""


def _older(folders: Sequence[str]) -> Older:
    """Describe the folders of link_dest."""
    found: Older = {"no_folders": [], "not_followed": ""}
    for folder in folders:
        try:
            is_folder = os.path.isdir(real_path(os.fsencode(folder)))
        except ForeignLink as refused:
            return {"no_folders": [], "not_followed": str(refused)}
        except OSError:
            is_folder = False
        if not is_folder:
            found["no_folders"].append(folder)
    return found


def _measure_held(path: PathFacts) -> None:
    """Count the tree that was just described, if it is still there, and can be read."""
    with contextlib.suppress(OSError, TransferFailed):
        fd = open_held(os.fsencode(path["real"]), path["folder"])
        try:
            path["measured"] = measure(fd)
        finally:
            os.close(fd)


def _measure_held_file(path: PathFacts) -> None:
    """Count the file that was just described, if it is still there."""
    folder, name = os.path.split(os.fsencode(path["real"]))
    with contextlib.suppress(OSError, TransferFailed):
        fd = open_held(folder, path["folder"])
        try:
            with Root(fd) as parent:
                entry = parent.lstat(name)
                if entry is not None:
                    content = count_holes(parent, entry).content
                    path["measured"] = {"entries": 1, "content": content, "apparent": entry.size, "complete": True}
        finally:
            os.close(fd)


def measure(root: bytes | int, seconds: float = 0.5) -> TreeSize:
    """Count a tree's entries and the room for them for ``seconds``; ``complete`` says whether that was enough.

    A file with several names counts once.
    """
    deadline = time.monotonic() + seconds
    found: TreeSize = {"entries": 0, "content": 0, "apparent": 0, "complete": True}
    seen: set[object] = set()
    with contextlib.suppress(OSError), Root(root) as tree:
        for entry in walk(root, on_error=lambda _path, _error: None):
            found["entries"] += 1
            if entry.type == REGULAR and (entry.link_id is None or entry.link_id not in seen):
                if entry.link_id is not None:
                    seen.add(entry.link_id)
                content = count_holes(tree, entry).content
                found["content"] += _room(content, entry.blocks)
                found["apparent"] += max(entry.size, _room(content, entry.blocks))
            elif entry.type != REGULAR:
                found["content"] += entry.blocks * _BLOCK
                found["apparent"] += entry.blocks * _BLOCK
            if (found["entries"] % 256 == 0 or entry.has_large_holes) and time.monotonic() > deadline:
                found["complete"] = False
                break
    return found


def _room(content: int, blocks: int) -> int:
    """Return the room for a file's content: its last block counts whole, and holes and compression do not count."""
    return max(content, min(blocks * _BLOCK, content + _LARGEST_BLOCK - 1))


def _sshd(ports: list[int], own_addresses: list[str]) -> SshdFacts:
    """Return whether the system's sshd answers on this host, and its configuration; neither without addresses."""
    found: SshdFacts = {"listening": [], "config": {}, "home": pwd.getpwuid(os.geteuid()).pw_dir}
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


def numbers_of(wanted: Mapping[str, list[str]]) -> Numbers:
    """Return the numbers of ``users`` and ``groups`` by name; None if no user has the name."""
    if not wanted:  # which is nearly always so
        return {}
    from .._tree.accounts import group_id, user_id

    return {
        kind: {name: number_of(name) for name in wanted.get(kind, ())}
        for kind, number_of in (("users", user_id), ("groups", group_id))
    }


def _rsyncd_module(name: str | None) -> dict[str, str] | None:
    """Return the options of a module of the rsync daemon that is configured here; None if there is none."""
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
