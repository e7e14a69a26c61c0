# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and write on one disk to measure it, past the caches, and count how busy its device was.

Files are read as the engine reads them, through the page cache, after what the cache had of them was dropped. What is
written is synced again and again, so that never more waits for the disk than it takes in a moment. A device is as busy
as the kernel says (``/sys/dev/block/*/stat``); where it counts nothing, as for FUSE, NFS and ZFS, by the time that was
spent in the calls. Rates do not count the time in which this job, of idle priority, waited for a processor.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
import subprocess
import time
from typing import TYPE_CHECKING, Callable, Iterator, NamedTuple, Sequence

from .._core.disk_full import find_room
from .._core.durability import sync_file_system
from .._core.files import new_hash
from .._core.mounts import MOUNTINFO, Mount, mount_around, parse_mounts
from .._core.subprocesses import ask, find_program
from .._core.time_accounting import WorkClock
from .._tree.dirfd import Root
from .tree import LARGE, ChosenFile

if TYPE_CHECKING:
    from typing import TypedDict

    class DiskRates(TypedDict):
        """Rates of a disk a second; 0: not measured."""

        large: float
        small: float
        entries: float
        compared: float
        kernel: bool
        busy: float
        note: str

else:
    DiskRates = dict

_BLOCK = 1 << 20  # bytes of a call
_SLICE = 256 << 20  # of one file that are read, at most
_CHUNK, _LARGEST_CHUNK = 4 << 20, 128 << 20  # bytes between two syncs
_QUICK = 0.1  # seconds: what is synced quicker is followed by more at once
_ROUND = 100  # small files between two syncs
_SMALL_FILE = 4096  # bytes
_LEAST_FREE = 8 << 20  # bytes that may be written: with less nothing is measured
_TICKS = 9  # the field with the milliseconds in which the device was busy
_ZPOOL_SECONDS = 5.0
_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "lustre")


def unmeasured() -> DiskRates:
    """Return what is told of a disk of which nothing could be measured."""
    return {"large": 0.0, "small": 0.0, "entries": 0.0, "compared": 0.0, "kernel": True, "busy": 0.0, "note": ""}


class Rate(NamedTuple):
    """Work done in a period."""

    amount: float = 0.0
    seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """The rate; 0 if nothing was done."""
        return self.amount / self.seconds if self.seconds > 0 else 0.0


class BusyMeter:
    """Counts how busy the device below a path is, from the first moment on."""

    def __init__(self, path: bytes) -> None:
        self.mount = _mount_of(path)
        self._stat = "" if self.mount is None else _stat_file(self.mount)
        self._began, self._ticks = time.monotonic(), self._read()
        self._in_calls = 0.0

    def _read(self) -> int | None:
        try:
            with open(self._stat, encoding="ascii") as stream:
                return int(stream.read().split()[_TICKS])
        except (OSError, ValueError, IndexError):
            return None

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Count the time of a block as spent in calls of the file system."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._in_calls += time.monotonic() - began

    def share(self) -> tuple[float, bool]:
        """Return the share of the time in which the device was busy, and whether the kernel counted it."""
        elapsed = max(time.monotonic() - self._began, 1e-6)
        ticks = self._read()
        if ticks is not None and self._ticks is not None and ticks > self._ticks:
            return min(1.0, (ticks - self._ticks) / 1000 / elapsed), True
        return min(1.0, self._in_calls / elapsed), False

    def note(self) -> str:
        """Return what must be known of the file system to read the figures; empty for a disk of this host."""
        if self.mount is None:
            return ""
        kind = self.mount.kind
        if kind == "zfs":
            return f"ZFS, {_pool_state(self.mount.source.partition('/')[0])}"
        if kind.startswith("fuse"):
            return f"FUSE ({kind})"
        if kind in _REMOTE:
            return f"network file system ({kind})"
        return f"in memory ({kind})" if kind in _IN_MEMORY else ""


def _mount_of(path: bytes) -> Mount | None:
    try:
        with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as stream:
            return mount_around(parse_mounts(stream.read()), os.fsdecode(path))
    except OSError:
        return None


def _stat_file(mount: Mount) -> str:
    """Return the file with the counts of a mount's block device; empty if it has none."""
    if not mount.device.startswith("0:"):
        return f"/sys/dev/block/{mount.device}/stat"
    with contextlib.suppress(OSError):  # btrfs has a number of its own, and names its device
        found = os.stat(mount.source)
        if stat.S_ISBLK(found.st_mode):
            return f"/sys/dev/block/{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}/stat"
    return ""


def _pool_state(pool: str) -> str:
    program = find_program("zpool")
    if not program or not pool or pool.startswith("-"):
        return "whose pool cannot be asked"
    try:
        said = ask([program, "list", "-H", "-o", "health,capacity", pool], _ZPOOL_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return f"pool {pool} did not answer"
    words = said.stdout.decode(errors="replace").split()
    return f"pool {pool} is {words[0]} and {words[1]} full" if len(words) == 2 else f"pool {pool} is not known"


def drop_cached(fd: int) -> None:
    """Let the kernel drop what it has of an open file, as far as that is on the disk."""
    with contextlib.suppress(AttributeError, OSError):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def is_cached(fd: int, size: int) -> bool:
    """Return whether the middle of a file is still in memory, as far as the system can tell."""
    if not hasattr(os, "RWF_NOWAIT") or not hasattr(os, "preadv"):
        return False
    try:
        return os.preadv(fd, [bytearray(1)], size // 2, os.RWF_NOWAIT) > 0
    except OSError:
        return False


class ReadResult(NamedTuple):
    """Large files that were read."""

    rate: Rate
    was_cached: bool  # some of it came from memory, and nothing could be done about it


def read_large(
    tree: Root, files: Sequence[ChosenFile], meter: BusyMeter, seconds: float, most: int, algorithm: str = ""
) -> ReadResult:
    """Read large files for ``seconds``, or ``most`` bytes; with ``algorithm`` they are hashed as they are read."""
    room = mmap.mmap(-1, _BLOCK)  # aligned, as direct I/O wants it
    digest = new_hash(algorithm) if algorithm else None
    count, was_cached, clock = 0, False, WorkClock()
    until = time.monotonic() + seconds
    try:
        for file in files:
            if time.monotonic() >= until or count >= most:
                break
            try:
                fd = tree.open_file(file.path)
            except OSError:
                continue
            try:
                drop_cached(fd)
                direct = is_cached(fd, file.size) and _read_directly(fd)
                was_cached = was_cached or (not direct and is_cached(fd, file.size))
                at, end = 0, min(file.size, _SLICE, most - count)
                while at < end and time.monotonic() < until:
                    with meter.call():
                        got = os.preadv(fd, [room], at)
                    if not got:
                        break
                    if digest is not None:
                        digest.update(memoryview(room)[:got])
                    at, count = at + got, count + got
                drop_cached(fd)
            except OSError:
                continue
            finally:
                os.close(fd)
        return ReadResult(Rate(count, clock.seconds()), was_cached)
    finally:
        room.close()


def _read_directly(fd: int) -> bool:
    """Have an open file read past the page cache; return whether its file system can."""
    import fcntl

    direct = getattr(os, "O_DIRECT", 0)
    if not direct:
        return False
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    room = mmap.mmap(-1, mmap.PAGESIZE)
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags | direct)
        os.preadv(fd, [room], 0)
        return True
    except OSError:
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETFL, flags)
        return False
    finally:
        room.close()


def read_small(tree: Root, files: Sequence[ChosenFile], meter: BusyMeter, seconds: float) -> Rate:
    """Open, read and close small files for ``seconds``; count files."""
    clock, until = WorkClock(), time.monotonic() + seconds
    done = 0
    for file in files:
        if time.monotonic() >= until:
            break
        try:
            with meter.call():
                fd = tree.open_file(file.path)
        except OSError:
            continue
        try:
            drop_cached(fd)
            with meter.call():
                os.read(fd, file.size)
            done += 1
        except OSError:
            continue
        finally:
            os.close(fd)
    return Rate(done, clock.seconds())


def write_large(folder: int, name: bytes, data: bytes, meter: BusyMeter, seconds: float, most: int) -> Rate:
    """Write a file for ``seconds``, or ``most`` bytes, and sync it on the way and in the end. Raises OSError.

    ``data`` is written again and again, so a file system that compresses shows what it does with such data.
    """
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    view = memoryview(data)
    clock, until = WorkClock(), time.monotonic() + seconds
    count, chunk = 0, _CHUNK
    try:
        while count < most and time.monotonic() < until:
            turn, left = time.monotonic(), min(chunk, most - count)
            with meter.call():
                while left > 0:
                    start = count % len(data)
                    written = os.write(fd, view[start : start + min(left, _BLOCK)])
                    count, left = count + written, left - written
                os.fsync(fd)
            if time.monotonic() - turn < _QUICK:
                chunk = min(2 * chunk, _LARGEST_CHUNK)
        return Rate(count, clock.seconds())
    finally:
        os.close(fd)


def write_small(folder: int, meter: BusyMeter, seconds: float, most: int) -> Rate:
    """Make files of 4 KiB for ``seconds``, ``most`` at most, and sync them in rounds. Raises OSError."""
    clock, until = WorkClock(), time.monotonic() + seconds
    done, turn = 0, _ROUND
    while done < most and time.monotonic() < until:
        started = time.monotonic()
        with meter.call():
            for number in range(done, min(most, done + turn)):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                fd = os.open(b"small-%d" % number, flags, 0o600, dir_fd=folder)
                try:
                    os.write(fd, os.urandom(_SMALL_FILE))
                finally:
                    os.close(fd)
                done = number + 1
            sync_file_system(folder)
        if time.monotonic() - started < _QUICK:
            turn *= 2
    return Rate(done, clock.seconds())


def room_for(folder: int, most: int) -> int:
    """Return how many bytes may be written: a tenth of the free room, ``most`` at most; 0 if that is too little."""
    room = min(most, find_room(folder).free // 10)
    return room if room >= _LEAST_FREE else 0


def files_for(folder: int, most: int) -> int:
    """Return how many files a measurement may make: a tenth of the free inodes, where the file system counts them."""
    free = find_room(folder).free_inodes
    return most if free is None else min(most, free // 10)


def measure_source(
    tree: Root,
    path: bytes,
    large: Sequence[ChosenFile],
    small: Sequence[ChosenFile],
    entries: float,
    seconds: float,
    most: int,
    algorithm: str,
    gap: Callable[[str], None],
) -> DiskRates:
    """Measure the disk of a source by reading its files; ``entries`` is the rate of the walk."""
    meter = BusyMeter(path)
    plain = read_large(tree, large[::2] or large, meter, seconds * 0.4, most // 2)
    busy, kernel = meter.share()
    compared = read_large(tree, large[1::2] or large, meter, seconds * 0.3, most // 2, algorithm)
    few = read_small(tree, small, meter, seconds * 0.3)
    if not plain.rate.amount:
        gap(f"No file of at least {LARGE >> 20} MiB could be read at the source: the rate of large files is unknown.")
        busy, kernel = meter.share()
    elif plain.was_cached:
        gap("Files at the source came out of its memory: its disk may be slower than measured.")
    if not few.amount:
        gap("No small file could be read at the source: the rate of small files is unknown.")
    return {
        "large": plain.rate.per_second,
        "small": few.per_second if few.amount else 0.0,
        "entries": entries,
        "compared": compared.rate.per_second if compared.rate.amount else 0.0,
        "kernel": kernel,
        "busy": busy,
        "note": meter.note(),
    }


def measure_dest(
    folder: int, path: bytes, data: bytes, seconds: float, most: int, algorithm: str, gap: Callable[[str], None]
) -> DiskRates:
    """Measure the disk of a destination by what is written into an open folder, and read back. Raises OSError."""
    found = unmeasured()
    meter = BusyMeter(path)
    found["note"] = meter.note()
    room = room_for(folder, most)
    if not room:
        gap("The destination has too little free room to measure its disk, of which a tenth is used at most.")
        return found
    written = write_large(folder, b"large", data, meter, seconds * 0.4, room)
    found["large"] = written.per_second
    found["busy"], found["kernel"] = meter.share()
    with Root(folder) as tree:
        files = [ChosenFile(b"large", int(written.amount))]
        back = read_large(tree, files, meter, seconds * 0.25, room, algorithm)
        found["compared"] = back.rate.per_second
        if back.was_cached:
            gap("What was written at the destination came back out of its memory: its disk may read slower.")
        os.unlink(b"large", dir_fd=folder)
        few = write_small(folder, meter, seconds * 0.3, files_for(folder, room // (2 * _SMALL_FILE)))
        found["small"] = few.per_second
        if not few.amount:
            gap("The destination has too few free inodes to measure small files.")
        looked, clock = 0, WorkClock()
        for number in range(int(few.amount)):
            tree.lstat(b"small-%d" % number)
            looked += 1
        found["entries"] = Rate(looked, clock.seconds()).per_second
    return found
