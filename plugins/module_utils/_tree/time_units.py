# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find out in which unit file systems keep modification times. Private to the collection."""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Iterable

from .._core.context import Context, staging_name
from .._core.mounts import points_below
from .._core.settings import COARSEST
from .._model.filters import SOURCE, Filters
from .._model.paths import escape
from .._model.time_units import TimeUnits
from .dirfd import Root

_SECOND = 10**9
_UNITS = (*(10**power for power in range(10)), COARSEST)
# Odd in seconds, and no multiple of any unit; a time that every file system can store.
_TRIAL = 1_000_000_001 * _SECOND + 987_654_321
_LOOKED_AT = 1000  # names of a folder, at most


def units_of(root_fd: int) -> TimeUnits:
    """Return the unit of a tree on one file system, by what is seen in its root."""
    return TimeUnits({"": observe(root_fd)})


def learn_file_systems(context: Context) -> None:
    """Put what is mounted inside a destination, and how it keeps times, into the settings of its job.

    A file of this transfer's own is given a time, which is read back. In check mode nothing is written: what the last
    run found counts, and if that is not known, what is seen.
    """
    settings = context.settings
    inner = _inner_mounts(context.root)
    units = settings["time_units"] if settings["check"] else {}
    if not units:
        with Root(context.top) as root:
            reachable = [] if settings["only"] is not None else _reachable(inner, settings["rules"])
            # The root may be closed to this user, as the staging folder never is; both are on one file system.
            top_fd = context.staged.temporary_fd if context.staged is not None else root.fd
            units = _units_below(root, reachable, observe if settings["check"] else measure, top_fd)
    context.settings = {**settings, "time_units": units, "mounts": [escape(path) for path in inner]}


def observed_units(path: bytes, rules: Iterable[str]) -> dict[str, int]:
    """Return the units of a tree as TimeUnits takes them, by what is seen there alone."""
    with contextlib.suppress(OSError), Root(path) as root:
        return _units_below(root, _reachable(_inner_mounts(path), rules), observe, root.fd)
    return {}


def _inner_mounts(root: bytes) -> list[bytes]:
    return [os.fsencode(point) for point in points_below(os.fsdecode(root))]


def _units_below(root: Root, inner: list[bytes], look: Callable[[int], int], top_fd: int) -> dict[str, int]:
    """Look at a root and at mount points inside it. Return an empty table if all keep times in nanoseconds."""
    units = {"": look(top_fd)}
    for path in inner:
        with contextlib.suppress(OSError):  # below something else meanwhile, or not for this user
            fd = root.open_directory(path)
            try:
                units[escape(path)] = look(fd)
            finally:
                os.close(fd)
    return units if max(units.values()) > 1 else {}


def _reachable(mounts: list[bytes], rules: Iterable[str]) -> list[bytes]:
    """Return the mount points without those that the rules leave out, which may not even answer."""
    try:
        filters = Filters.parse(rules) if mounts else None
    except ValueError:  # a rule that only rsync can follow
        filters = None
    if not filters:
        return mounts
    return [path for path in mounts if all(filters.allows(part, True, SOURCE) for part in _way_to(path))]


def _way_to(path: bytes) -> list[bytes]:
    """Return a path and all folders above it, the first one first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def measure(folder_fd: int) -> int:
    """Return the unit, in nanoseconds, in which the file system of an open folder keeps the times of a new file.

    Where no file can be made, it is what ``observe`` says.
    """
    try:
        return _unit_of(_kept(folder_fd, _TRIAL))
    except OSError:
        return observe(folder_fd)


def _unit_of(kept_ns: int) -> int:
    """Return the unit that makes of the trial time what was kept; 1 if none does."""
    return next((unit for unit in _UNITS if _TRIAL - _TRIAL % unit == kept_ns), 1)


def _kept(folder_fd: int, time_ns: int) -> int:
    """Set the time of a file of our own, and return what is kept of it. The folder is left as it was."""
    before = os.fstat(folder_fd)
    name = os.fsencode(staging_name(os.urandom(8).hex()))  # which nobody takes for the user's, if this is killed
    try:
        fd = os.open(b".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=folder_fd)
        name = b""
    except (AttributeError, OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o600, dir_fd=folder_fd)
    try:
        os.utime(fd, ns=(time_ns, time_ns))
        return os.fstat(fd).st_mtime_ns
    finally:
        os.close(fd)
        if name:
            os.unlink(name, dir_fd=folder_fd)
            with contextlib.suppress(OSError):
                os.utime(folder_fd, ns=(before.st_atime_ns, before.st_mtime_ns))


def observe(folder_fd: int) -> int:
    """Return a second if all times of an open folder and of what is in it are whole seconds, else a nanosecond.

    The kernel sets a change time, and does so in nanoseconds where the file system keeps them.
    """
    if _is_finer(os.fstat(folder_fd)):
        return 1
    with contextlib.suppress(OSError), os.scandir(folder_fd) as names:
        for number, name in enumerate(names):
            if number == _LOOKED_AT:
                break
            with contextlib.suppress(OSError):
                if _is_finer(name.stat(follow_symlinks=False)):
                    return 1
    return _SECOND


def _is_finer(status: os.stat_result) -> bool:
    return bool(status.st_mtime_ns % _SECOND or status.st_ctime_ns % _SECOND)
