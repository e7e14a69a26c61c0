# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The room on the file system of a repository, and how much of it a backup must leave. Private to the collection."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .._core import disk_full
from .conditions import parse_size
from .errors import Refused

_PERCENT = re.compile(r"(\d{1,2}(?:\.\d{1,3})?)\s*%", re.ASCII)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class Room(NamedTuple):
    """The room on a file system. Without a fixed number of inodes, theirs is None."""

    bytes_total: int
    bytes_free: int  # for users other than root
    files_total: int | None
    files_free: int | None


class LeastFree(NamedTuple):
    """The room that must be free before a backup begins; of both the larger counts."""

    bytes: int = 0
    percent: float = 0.0  # of the bytes, and of the inodes where their number is fixed


def find_room(path: str) -> Room:
    """Return the room of a file system. Raises OSError.

    Check mode makes no folder for the job, so the nearest one that exists counts.
    """
    while not os.path.exists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    found = disk_full.find_room(path)
    return Room(found.total, found.free, found.inodes, found.free_inodes)


def parse_least_free(text: str) -> LeastFree:
    """Return what ``min_free`` says: bytes, such as ``50G``, or per cent, such as ``10%``. Raises Refused."""
    found = _PERCENT.fullmatch(text.strip())
    if found is not None:
        return LeastFree(percent=float(found[1]))
    if "%" in text:
        raise Refused(f"min_free is {text!r}. Write per cent from 0 to 99, such as 10%, or bytes, such as 50G")
    return LeastFree(bytes=parse_size("min_free", text))


def explain_too_full(room: Room, least: LeastFree) -> str:
    """Return why a file system with this room has too little; empty if it has enough. Pure."""
    wanted = max(least.bytes, int(room.bytes_total * least.percent / 100))
    if wanted > room.bytes_total:
        return f"all of it is {_shown(room.bytes_total)}, so {_shown(wanted)} can never be free"
    if room.bytes_free < wanted:
        return f"{_shown(room.bytes_free)} of {_shown(room.bytes_total)} are free, and {_shown(wanted)} must be"
    if room.files_total and room.files_free is not None:
        inodes = int(room.files_total * least.percent / 100)
        if room.files_free < inodes:
            return f"{room.files_free} of {room.files_total} inodes are free, and {inodes} must be"
    return ""


def refuse_too_full(repository: str, text: str) -> None:
    """Raise Refused if the repository has less free than ``min_free`` says. Raises OSError."""
    reason = explain_too_full(find_room(repository), parse_least_free(text))
    if reason:
        raise Refused(
            f"the file system of the repository {repository} is too full: {reason} before a backup begins (min_free is "
            f"{text}). Nothing was begun. Keep fewer snapshots (keep), which the end of this run prunes, give it more "
            "room, or lower min_free"
        )


def _shown(count: float) -> str:
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {_UNITS[-1]}"
