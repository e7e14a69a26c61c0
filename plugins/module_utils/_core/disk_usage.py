# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Use of the disks below a tree, as Linux counts it, and the state of a ZFS pool. Private to the collection.

Source: the kernel's Documentation/admin-guide/iostats.rst. File systems without a device of their own (FUSE, NFS,
overlay, ZFS, tmpfs) and those of several devices (btrfs) are not counted.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Iterable, NamedTuple

if TYPE_CHECKING:
    from typing import TypedDict

    class DiskUsage(TypedDict, total=False):
        """Use of a disk during a transfer. Without ``seconds`` the kernel counted nothing."""

        seconds: float  # that were counted
        busy: float  # seconds in which the busiest device had something to do
        read: int  # bytes
        written: int
        pool_state: str
        pool_full: float  # share

else:  # making such a class takes time at each job's start
    DiskUsage = dict

SECTOR = 512  # bytes, whatever the sectors of the disk are
POOL_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED")
_SYSFS, _COUNTERS, _MOUNTS, _BTRFS = "/sys", "/proc/diskstats", "/proc/self/mountinfo", "/sys/fs/btrfs"
_DEEPEST = 8  # devices on devices: LVM on LUKS on md on a disk is three
_PATIENCE = 5  # seconds for zpool, which waits where a pool hangs


class DiskCounters(NamedTuple):
    """Counters of one device since boot."""

    busy: float  # seconds
    read: int  # bytes
    written: int


def parse_counters(text: str) -> dict[str, DiskCounters]:
    """Return the counters in /proc/diskstats by device (major:minor); lines that cannot be read are left out."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 14 and all(word.isdigit() for word in (*words[:2], *words[3:14])):
            busy, read, written = int(words[12]) / 1000, int(words[5]) * SECTOR, int(words[9]) * SECTOR
            found[f"{words[0]}:{words[1]}"] = DiskCounters(busy, read, written)
    return found


def usage_between(
    before: dict[str, DiskCounters], after: dict[str, DiskCounters], devices: Iterable[str], seconds: float
) -> DiskUsage:
    """Return the use of devices between two readings; empty if one of them is not counted.

    Counters that have become smaller (a device that was replaced) count as unchanged.
    """
    pairs = [(before.get(device), after.get(device)) for device in devices]
    spent = [(old, new) for old, new in pairs if old is not None and new is not None]
    if not pairs or len(spent) != len(pairs) or seconds <= 0:
        return {}
    return {
        "seconds": round(seconds, 3),
        "busy": round(min(seconds, max(max(0.0, new.busy - old.busy) for old, new in spent)), 3),
        "read": sum(max(0, new.read - old.read) for old, new in spent),
        "written": sum(max(0, new.written - old.written) for old, new in spent),
    }


def whole_devices(device: str, sysfs: str = _SYSFS, depth: int = _DEEPEST) -> list[str]:
    """Return the whole disks (major:minor) on which a block device lies: itself, or those below a partition or LVM."""
    place = os.path.realpath(os.path.join(sysfs, "dev", "block", device))
    if os.path.exists(os.path.join(place, "partition")):
        place = os.path.dirname(place)
    try:
        below = sorted(os.listdir(os.path.join(place, "slaves"))) if depth else []
    except OSError:
        below = []
    found = [
        one
        for name in below
        for number in [_first_line(os.path.join(place, "slaves", name, "dev"))]
        if number
        for one in whole_devices(number, sysfs, depth - 1)
    ]
    return list(dict.fromkeys(found)) or [_first_line(os.path.join(place, "dev")) or device]


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii") as stream:
            return stream.readline().strip()
    except (OSError, ValueError):
        return ""


class MountedOn(NamedTuple):
    """The kind of the file system that a folder is on, and what was mounted: a device, or a data set of ZFS."""

    kind: str
    source: str


def mounted_on(mountinfo: str, mount_id: int) -> MountedOn:
    """Return kind and source of the mount with an id of mountinfo; two empty words if there is none."""
    for line in mountinfo.splitlines():
        words = line.split()
        if words[:1] == [str(mount_id)] and "-" in words[6:]:
            kind, source, *_rest = [*words[words.index("-", 6) + 1 :], "", ""]
            return MountedOn(kind, source)
    return MountedOn("", "")


def mount_of(fd: int) -> MountedOn:
    """Return kind and source of the mount of an open folder, as far as the system says it."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as stream:
            numbers = [int(line.split()[1]) for line in stream if line.startswith("mnt_id:")]
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as stream:
            return mounted_on(stream.read(), numbers[0])
    except (OSError, ValueError, IndexError):
        return MountedOn("", "")


def devices_of(fd: int) -> list[str]:
    """Return the whole disks below an open folder; none if the kernel counts none for its file system."""
    number = os.fstat(fd).st_dev
    if os.major(number):
        return whole_devices(f"{os.major(number)}:{os.minor(number)}")
    mounted = mount_of(fd)
    if mounted.kind != "btrfs":
        return []
    device = _of_btrfs(os.path.basename(os.path.realpath(mounted.source)))
    return whole_devices(device) if device else []


def _of_btrfs(name: str, folder: str = _BTRFS) -> str:
    """Return the device of the btrfs that has the device ``name``; empty if it has several, or none is known."""
    try:
        for one in os.listdir(folder):
            devices = os.path.join(folder, one, "devices")
            names = os.listdir(devices) if os.path.isdir(devices) else []
            if name in names:
                return _first_line(os.path.join(devices, name, "dev")) if len(names) == 1 else ""
    except OSError:
        pass
    return ""


def parse_pool(line: str) -> DiskUsage:
    """Return the state and the fill in a line of ``zpool list -H -o capacity,health``; empty if it has none."""
    words = line.split()
    if len(words) != 2 or words[1] not in POOL_STATES:
        return {}
    full = words[0].rstrip("%")
    return {"pool_state": words[1], "pool_full": min(1.0, int(full) / 100) if full.isdigit() else 0.0}


def pool_of(mounted: MountedOn) -> DiskUsage:
    """Return the state and the fill of the ZFS pool of a mount; empty if it is none."""
    pool = mounted.source.partition("/")[0]
    is_name = pool[:1].isalpha() and pool.isascii() and pool.isprintable()
    if not (mounted.kind == "zfs" or mounted.kind.startswith("fuse")) or not is_name:
        return {}
    import subprocess  # a job on another file system starts without

    from . import subprocesses

    zpool = subprocesses.find_program("zpool")
    if zpool is None:
        return {}
    try:
        said = subprocesses.ask([zpool, "list", "-H", "-o", "capacity,health", pool], _PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_pool(said.stdout.decode(errors="replace")) if said.returncode == 0 else {}


class DiskMeter:
    """Use of the disks below an open folder since ``begin``. Made before the process is confined; for any thread."""

    def __init__(self, fd: int) -> None:
        """Look for the disks and the pool; what cannot be found is not counted. Raises nothing."""
        self._counters = -1
        self._devices: list[str] = []
        self._pool: DiskUsage = {}
        try:
            self._devices = devices_of(fd)
            if self._devices:
                self._counters = os.open(_COUNTERS, os.O_RDONLY | os.O_CLOEXEC)
            else:
                self._pool = pool_of(mount_of(fd))
        except OSError:
            self._devices = []
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._begun, self._before = time.monotonic(), self._read()

    def usage(self) -> DiskUsage:
        """Return what was used since the beginning."""
        seconds = time.monotonic() - self._begun
        return {**usage_between(self._before, self._read(), self._devices, seconds), **self._pool}

    def _read(self) -> dict[str, DiskCounters]:
        if self._counters < 0:
            return {}
        pieces: list[bytes] = []
        offset = 0
        try:
            while True:
                piece = os.pread(self._counters, 1 << 16, offset)
                if not piece:
                    return parse_counters(b"".join(pieces).decode("ascii", "replace"))
                pieces.append(piece)
                offset += len(piece)
        except OSError:
            return {}
