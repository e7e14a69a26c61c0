# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mounted file systems, on Linux. Source: proc(5), mountinfo."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from typing import Iterable, Iterator, NamedTuple, Sequence

from .counted import among, counted

MOUNTINFO = "/proc/self/mountinfo"


class Mount(NamedTuple):
    """One line of mountinfo."""

    device: str  # major:minor
    root: str  # the path in the file system that is mounted; "/" unless it is a bind mount or a subvolume
    point: str
    kind: str  # of the file system
    options: frozenset[str]  # of the mount point, and of the file system
    source: str = ""  # what is mounted: a device, a dataset, an export


def parse_mounts(mountinfo: str) -> Iterator[Mount]:
    """Yield the mounts in their order: one on the same point as an earlier one covers that."""
    for line in mountinfo.splitlines():
        words = line.split()
        if len(words) < 6 or "-" not in words[6:]:
            continue
        kind, source = (*words[words.index("-", 6) + 1 :], "", "")[:2]
        options = frozenset(words[5].split(",") + words[-1].split(","))
        yield Mount(words[2], unescaped(words[3]), unescaped(words[4]), kind, options, unescaped(source))


def unescaped(point: str) -> str:
    """Return a mount point as it is: blanks, tabs, newlines and backslashes are octal in the tables of mounts."""
    return os.fsdecode(re.sub(rb"\\(\d{3})", lambda found: bytes([int(found.group(1), 8)]), os.fsencode(point)))


def is_on(path: str, point: str) -> bool:
    """Return whether an absolute path is a mount point, or inside it."""
    return path == point or path.startswith(point.rstrip("/") + "/")


def mount_around(mounts: Iterable[Mount], path: str) -> Mount | None:
    """Return the mount that an absolute path without symbolic links is on; None if no mount is known."""
    around: Mount | None = None
    for mount in mounts:
        if is_on(path, mount.point) and (around is None or len(mount.point) >= len(around.point)):
            around = mount
    return around


def path_on_device(mounts: Iterable[Mount], path: str) -> str:
    """Return the device of a path and the path in its file system, which all bind mounts of a folder share.

    ``path`` is absolute and without symbolic links; it need not exist. Empty if no mount is known.
    """
    around = mount_around(mounts, path)
    if around is None:
        return ""
    below = os.path.relpath(path, around.point)
    return f"{around.device}:{os.path.normpath(os.path.join(around.root, below))}"


def device_path(path: str) -> str:
    """Return :func:`path_on_device`, as far as the system says it."""
    try:
        with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as stream:
            return path_on_device(parse_mounts(stream.read()), path)
    except OSError:
        return ""


def most_places(mounts: Iterable[Mount], root: str) -> int:
    """Return in how many places of a tree the same file can be at most: more than one where a bind mount is inside.

    ``root`` is an absolute path without symbolic links.
    """
    inside: Counter[str] = Counter()
    around = ("", "")  # the device and the point of the mount that the root is on
    for mount in mounts:
        if is_on(root, mount.point) and len(mount.point) >= len(around[1]):
            around = mount.device, mount.point
        elif is_on(mount.point, root):
            inside[mount.device] += 1
    inside[around[0]] += 1
    return max(inside.values())


def places_in(root: str) -> int:
    """Return :func:`most_places` of a tree, as far as the system says it."""
    try:
        with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as stream:
            return most_places(parse_mounts(stream.read()), root)
    except OSError:
        return 1


def place_of(fd: int) -> tuple[int, int]:
    """Return what two open folders have in common if a file can be renamed and linked from one to the other.

    That is the mount, which may be a bind mount of the same device, and the device, which may be a subvolume's. Raises
    OSError if this process has no descriptors left.
    """
    mount = -1
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as lines:
            mount = next((int(line.split()[1]) for line in lines if line.startswith(b"mnt_id:")), -1)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise  # else the system does not say it
    return mount, os.fstat(fd).st_dev


def points_below(root: str) -> list[str]:
    """Return the mount points inside a tree, relative to its root, in order, as far as the system tells them.

    ``root`` is an absolute path without symbolic links.
    """
    try:
        with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as stream:
            points = {mount.point for mount in parse_mounts(stream.read())}
    except OSError:
        return []
    return sorted(os.path.relpath(point, root) for point in points if point != root and is_on(point, root))


def mounts_stay(points: Sequence[str]) -> str:
    """Return the warning that mount points (escaped) stay at a destination from which the rest was deleted."""
    stay = counted(len(points), "mount point stays", "mount points stay")
    return (
        f"{stay} at the destination, with all that is in there, though the source does not have it: "
        f"{among([repr(points[0])], len(points))}. Unmount what is to go, and run the task again"
    )
