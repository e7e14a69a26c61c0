# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what rsnapshot made as snapshots with their times. Private to the collection.

rsnapshot keeps ``hourly.0``, ``hourly.1``, ``daily.0`` … below its ``snapshot_root``; 0 is the newest of a level. It
sets the modification time of a level's folder to the end of its run, and renames folders from then on, which keeps that
time. Newer configurations call the levels alpha, beta, gamma and delta; a configuration may call them anything. Source:
rsnapshot(1), ``retain`` and ``sync_first``.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Iterable, NamedTuple

from .._tree.resolve import ForeignLink, open_folder
from . import names
from .errors import Refused

LEVELS = ("hourly", "daily", "weekly", "monthly", "yearly", "alpha", "beta", "gamma", "delta", "epsilon")

_NAME = re.compile(r"(.+)\.(0|[1-9][0-9]{0,5})")


class Interval(NamedTuple):
    """One folder of rsnapshot."""

    name: str  # hourly.0
    level: str
    number: int
    mtime: int  # seconds since 1970: when rsnapshot was done with it


def intervals(found: Iterable[tuple[str, int]], levels: Iterable[str] = LEVELS) -> list[tuple[int, Interval]]:
    """Choose the folders of the levels from (name, mtime); gives (time of the snapshot, folder), the oldest first.

    Pure. Two folders of the same second become snapshots a second apart. Raises Refused if the numbers of a level
    and its times contradict each other, for then the times are not those of the backups.
    """
    wanted = set(levels)
    chosen = []
    for name, mtime in found:
        parts = _NAME.fullmatch(name)
        if parts and parts.group(1) in wanted:
            chosen.append(Interval(name, parts.group(1), int(parts.group(2)), mtime))
    for level in wanted:
        row = sorted((item for item in chosen if item.level == level), key=lambda item: item.number)
        for newer, older in zip(row, row[1:]):
            if newer.mtime < older.mtime:
                raise Refused(
                    f"{older.name} has a later time than {newer.name}, which rsnapshot made after it. Something "
                    "changed the times of these folders, so it cannot be told when the backups were made: set them "
                    "right with touch -d, the newest last"
                )
    result: list[tuple[int, Interval]] = []
    for item in sorted(chosen, key=lambda item: (item.mtime, -item.number, item.name)):
        at = item.mtime if not result else max(item.mtime, result[-1][0] + 1)
        names.name_of(at)  # refuses what no snapshot can be named after
        result.append((at, item))
    return result


def open_root(root: str) -> tuple[int, list[tuple[str, int]]]:
    """Open rsnapshot's snapshot_root.

    Gives its fd, the caller's, and (name, mtime in seconds) of every folder in it.
    """
    try:
        fd = open_folder(os.fsencode(root))
    except ForeignLink as refused:
        raise Refused(f"rsnapshot's {root} is not used: {refused}") from None
    except OSError as error:
        raise Refused(
            f"rsnapshot's {root} cannot be opened: {error.strerror}. Name its snapshot_root, as rsnapshot.conf has it, "
            "not a symbolic link"
        ) from None
    found = []
    try:
        for name in os.listdir(fd):
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                found.append((name, int(status.st_mtime)))
    except BaseException:
        os.close(fd)
        raise
    return fd, found
