# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Preflight facts of one host for a migration: room, file system, tools, the way to its peer, ZFS. Reads only."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from typing import TYPE_CHECKING

from .._core.disk_full import find_room
from .._core.mounts import is_on, unescaped
from .._core.subprocesses import find_program, run
from .._tree.resolve import ForeignLink, resolve

if TYPE_CHECKING:
    from typing import TypedDict

    class MountFacts(TypedDict):
        point: str  # empty: not known
        type: str
        options: list[str]
        source: str  # a device, a dataset, or the server and its path

    class ZfsFacts(TypedDict, total=False):
        """What zfs says; empty for other file systems."""

        properties: dict[str, str]
        pool: dict[str, str]

    class EndFacts(TypedDict):
        """One end of a migration, as the step discover returns it."""

        path: str
        base: str  # what exists of it
        exists: bool
        root: bool  # whether this is done as root
        mount: str
        fstype: str
        disks: list[str]  # see find_disks
        bytes_free: int
        files_free: int | None  # None: no fixed number of inodes
        xattrs: bool | None  # None: not known
        acls: bool | None
        case_insensitive: bool
        largest_file: int | None
        tools: dict[str, str | None]  # where they are
        peer: str  # see reach
        zfs: ZfsFacts
        problems: list[str]
        warnings: list[str]


TOOLS = ("rsync", "ssh", "scp", "sftp", "tar", "nc", "zfs")

# File systems that tell no difference between a.txt and A.TXT, and the largest file of those that have a low limit.
CASE_INSENSITIVE = frozenset({"vfat", "msdos", "exfat", "ntfs", "ntfs3", "hfsplus", "cifs", "smb3", "smbfs", "msdosfs"})
NETWORK = {
    **dict.fromkeys(("nfs", "nfs4"), "keeps owners only where its export says no_root_squash"),
    **dict.fromkeys(
        ("cifs", "smb3", "smbfs"),
        "keeps owners, modes, hard links and special files only where its server has POSIX extensions",
    ),
}
LARGEST_FILE = {"vfat": 4 * 2**30 - 1, "msdos": 4 * 2**30 - 1, "msdosfs": 4 * 2**30 - 1}

_MOST_LAYERS = 8  # of volumes on arrays on partitions

ZFS_PROPERTIES = ("recordsize", "sync", "atime", "xattr", "acltype", "compression", "available", "readonly")


def mount_of(path: str, table: str) -> MountFacts:
    """Find the mount that a real path is on, in the text of /proc/self/mounts (the last of the longest matches)."""
    best: MountFacts = {"point": "", "type": "", "options": [], "source": ""}
    for line in table.splitlines():
        words = line.split(" ")
        if len(words) < 4:
            continue
        point = unescaped(words[1])
        if is_on(path, point) and len(point) >= len(best["point"]):
            best = {"point": point, "type": words[2], "options": words[3].split(","), "source": unescaped(words[0])}
    return best


def read_mounts() -> str:
    """Return the table of mounts, in the form of /proc/self/mounts. Empty if there is none."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            return mounts.read()
    except OSError:
        pass
    try:  # FreeBSD: mount -p prints the form of fstab, with tabs
        said = run(["mount", "-p"])
    except OSError:
        return ""
    return "\n".join(" ".join(line.split()) for line in said.stdout.decode(errors="replace").splitlines())


def find_disks(path: str, mount: MountFacts, system: str = "/sys") -> list[str]:
    """Return names of what the data at a path is on: trees that share one of them slow each other down.

    That is the disks below partitions, volumes and arrays; the pool of a ZFS dataset; the server of a network file
    system. For all others it is the mount point. ``system`` is where the kernel shows its devices.
    """
    if mount["type"] == "zfs":
        return [f"pool {mount['source'].split('/')[0]}"]
    if mount["type"] in NETWORK:
        return [f"server {mount['source'].lstrip('/').split(':')[0].split('/')[0]}"]
    numbers = []
    with contextlib.suppress(OSError):
        numbers.append(os.stat(path).st_dev)
    if mount["source"].startswith("/dev/"):  # several file systems have no number of a device
        with contextlib.suppress(OSError):
            numbers.append(os.stat(mount["source"]).st_rdev)
    for number in numbers:
        device = os.path.join(system, "dev", "block", f"{os.major(number)}:{os.minor(number)}")
        if number and os.path.isdir(device):
            return sorted(_disks_below(os.path.realpath(device), _MOST_LAYERS))
    return [mount["point"]] if mount["point"] else []


def _disks_below(device: str, layers: int) -> set[str]:
    """Return the disks of a device of the kernel; ``device`` is its folder in sysfs."""
    try:
        parts = sorted(os.listdir(os.path.join(device, "slaves")))
    except OSError:
        parts = []
    if parts and layers:
        return set().union(
            *(_disks_below(os.path.realpath(os.path.join(device, "slaves", part)), layers - 1) for part in parts)
        )
    if os.path.exists(os.path.join(device, "partition")):
        device = os.path.dirname(device)
    return {os.path.basename(device)}


def keeps(path: str, attribute: str) -> bool | None:
    """Return whether the file system keeps this extended attribute. None: Python cannot tell on this system."""
    if not hasattr(os, "getxattr"):
        return None
    try:
        os.getxattr(path, attribute)
    except OSError as error:
        return error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP)
    return True


def reach(address: str, port: int, seconds: float = 3.0) -> str:
    """Try a connection: "open", "refused" (the host answers, the port is closed) or what stands in the way."""
    try:
        with socket.create_connection((address, port), timeout=seconds):
            return "open"
    except ConnectionRefusedError:
        return "refused"
    except (socket.timeout, TimeoutError):
        return "no answer"
    except OSError as error:
        return error.strerror or str(error)


def evaluate_zfs(side: str, properties: dict[str, str], pool: dict[str, str]) -> dict[str, list[str]]:
    """Return what a dataset's properties and its pool's state, as zfs and zpool print them, mean for a migration."""
    problems: list[str] = []
    warnings: list[str] = []
    if pool.get("health") not in (None, "ONLINE"):
        problems.append(f"the ZFS pool is {pool['health']}, not ONLINE: see 'zpool status' before moving data")
    if side == "source":
        return {"problems": problems, "warnings": warnings}
    if properties.get("readonly") == "on":
        problems.append("the ZFS dataset is read-only: 'zfs set readonly=off' makes it writable")
    if pool.get("capacity", "").rstrip("%").isdigit() and int(pool["capacity"].rstrip("%")) > 80:
        warnings.append(f"the ZFS pool is {pool['capacity'].rstrip('%')}% full; above 80% it gets slow")
    if properties.get("sync") == "disabled":
        warnings.append("sync=disabled: what was written last is lost when the host loses power")
    if properties.get("acltype") in ("off", "noacl"):
        warnings.append("acltype=off: ACLs of the source cannot be kept; 'zfs set acltype=posixacl' keeps them")
    if properties.get("compression") == "off":
        warnings.append("compression=off: lz4 costs next to nothing and saves room")
    if properties.get("atime") == "on":
        warnings.append("atime=on: every read of the new tree writes")
    if properties.get("xattr") == "dir":
        warnings.append("xattr=dir: extended attributes and ACLs are slow; 'zfs set xattr=sa' before the first copy")
    return {"problems": problems, "warnings": warnings}


def ask_zfs(mount_point: str, program: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the properties of the dataset that is mounted there, and the state of its pool."""

    def said(*argv: str) -> str:
        return run(argv).stdout.decode(errors="replace")

    properties = {}
    dataset = ""
    for line in said(program, "get", "-Hp", "-o", "name,property,value", ",".join(ZFS_PROPERTIES), mount_point).split(
        "\n"
    ):
        words = line.split("\t")
        if len(words) == 3:
            dataset, properties[words[1]] = words[0], words[2]
    zpool = os.path.join(os.path.dirname(program), "zpool")
    words = said(zpool, "list", "-Hp", "-o", "health,capacity", dataset.split("/")[0]).split() if dataset else []
    return properties, dict(zip(("health", "capacity"), words))


def discover(side: str, path: str, peer: str, port: int) -> EndFacts:
    """Look at the end ``side`` (source or dest) at ``path``, and try ``port`` of the address ``peer`` ("": do not).

    Sizes are bytes; ``files_free`` is None if the file system has no fixed number of inodes.
    """
    problems, warnings = [], []
    tools = {tool: find_program(tool) for tool in TOOLS}
    followed = True
    try:
        place = resolve(os.fsencode(path.rstrip("/") or "/"))
    except ForeignLink as refused:
        problems.append(f"{path} is not used: {refused}")
        followed, place = False, resolve(b"/")
    os.close(place.fd)
    base = os.fsdecode(place.existing)
    room = find_room(base)
    mount = mount_of(base, read_mounts())

    if not followed:
        pass
    elif side == "source":
        if place.error is not None:
            problems.append(f"{path} cannot be looked at: {place.error.strerror}")
        elif place.status is None:
            problems.append(f"{path} does not exist")
        elif stat.S_ISDIR(place.status.st_mode) and not os.access(base, os.R_OK | os.X_OK):
            problems.append(f"{path} cannot be read by the user that Ansible becomes: see ansible_become")
    else:
        if not os.path.isdir(base):
            problems.append(f"{base} is a file where a directory is needed")
        elif room.is_read_only:
            problems.append(f"{mount['point'] or base} is mounted read-only")
        elif not os.access(base, os.W_OK | os.X_OK):
            problems.append(f"{base} cannot be written by the user that Ansible becomes: see ansible_become")

        if mount["type"] in NETWORK:
            warnings.append(
                f"{mount['point']} is a network file system ({mount['type']}), which {NETWORK[mount['type']]}; the "
                "transfer fails before it writes anything where owners cannot be kept"
            )

    zfs: ZfsFacts = {}
    if mount["type"] == "zfs" and tools["zfs"]:
        properties, pool = ask_zfs(mount["point"], tools["zfs"])
        verdict = evaluate_zfs(side, properties, pool)
        zfs = {"properties": properties, "pool": pool}
        problems += verdict["problems"]
        warnings += verdict["warnings"]

    return {
        "path": path,
        "base": base,
        "exists": followed and place.status is not None,
        "root": os.geteuid() == 0,
        "mount": mount["point"],
        "fstype": mount["type"],
        "disks": find_disks(base, mount) if followed else [],
        "bytes_free": room.free,
        "files_free": room.free_inodes,
        "xattrs": keeps(base, "user.longhaul"),
        "acls": keeps(base, "system.posix_acl_access"),
        "case_insensitive": mount["type"] in CASE_INSENSITIVE,
        "largest_file": LARGEST_FILE.get(mount["type"]),
        "tools": tools,
        "peer": reach(peer, port) if peer else "",
        "zfs": zfs,
        "problems": problems,
        "warnings": warnings,
    }
