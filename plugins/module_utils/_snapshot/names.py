# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names in the folder of a job, and which time a snapshot has. Private to the collection.

Pure. A complete snapshot is named by its UTC time, ``2026-11-21T173009Z``, so names sort as times do and contain
nothing that a shell or rsync takes for something else. Everything that is no complete snapshot has another form:
what begins with a dot is not meant for people, and what is set aside waits for a decision.
"""

from __future__ import annotations

import functools
import hashlib
import re
import time
from typing import Collection

from .errors import Refused

# In the folder of a job
UNFINISHED = ".unfinished"  # the one that is being written
ASIDE_PREFIX = "aside-"  # before the time: complete, but so much is gone or has changed that somebody must look first
REMOVING_PREFIX = ".removing-"  # before the time: what is left of one that is being removed
LATEST = "latest"  # a symlink to the newest complete snapshot
NEW_LATEST = ".latest-new"
LOCK = ".lock"
CHECKS = ".checks.json"
HISTORY = "history.jsonl"
REPAIR = ".repair"  # intact contents on their way to damaged files

# In the folder of a snapshot
DATA = "data"
MANIFEST = "manifest"
FACTS = "snapshot.json"
CHECKED = "checked.json"
HOLD = "hold.json"
CHANGE_TIMES = "change-times"  # of the source's files; of a part of the tree, the name has its hash
NEW_SUFFIX = ".new"  # of a file that is written before it takes its place

COMPLETE, ASIDE, REMOVING = "complete", "aside", "removing"
PREFIXES = {COMPLETE: "", ASIDE: ASIDE_PREFIX, REMOVING: REMOVING_PREFIX}

LARGEST_STEP = 86400  # seconds that a clock may have been ahead for the next snapshot to be named after the newest

_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z")
_FORMAT = "%Y-%m-%dT%H%M%SZ"
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_LAST_SECOND = 253402300799  # 9999-12-31T23:59:59Z: later ones would need a longer name


def name_of(seconds: int, kind: str = COMPLETE) -> str:
    """Return the name of the snapshot of a time, in seconds since 1970. Raise ValueError before 1970 or after 9999."""
    if not 0 <= seconds <= _LAST_SECOND:
        raise ValueError(f"no snapshot can be named after {seconds} seconds since 1970")
    return PREFIXES[kind] + time.strftime(_FORMAT, time.gmtime(seconds))


@functools.lru_cache(maxsize=4096)  # a history has each name several times
def time_of(name: str) -> int | None:
    """Return the time of a complete snapshot's name, in seconds since 1970; None if it is no such name."""
    if not _NAME.fullmatch(name) or not name.isascii():
        return None
    import calendar  # which takes a while, and a transfer needs none of it

    try:
        seconds = calendar.timegm(time.strptime(name, _FORMAT))
        return seconds if name_of(seconds) == name else None  # not one with a 61st second
    except ValueError:
        return None


def time_text(seconds: int) -> str:
    """Return a time, in seconds since 1970, as results and files have it: ``2026-11-21T17:30:09Z``."""
    return time.strftime(_TIME, time.gmtime(seconds))


def read(name: str) -> tuple[str, int | None]:
    """Read a name in the folder of a job: its kind and its time; an empty string and None for anything else."""
    kind = next((kind for kind in (ASIDE, REMOVING) if name.startswith(PREFIXES[kind])), COMPLETE)
    at = time_of(name[len(PREFIXES[kind]) :])
    return (kind, at) if at is not None else ("", None)


def kind_of(name: str) -> str:
    """Return the kind of a name in the folder of a job: complete, aside or removing; empty for anything else."""
    return read(name)[0]


def once_accepted(name: str) -> str:
    """Return the name that a snapshot has once it is no longer set aside; any other name as it is."""
    return name[len(ASIDE_PREFIX) :] if name.startswith(ASIDE_PREFIX) else name


def part_of(path: str) -> tuple[int, str] | None:
    """Return how many folders above a tree its snapshot is, and the name of the folder in its data; empty for all.

    ``path`` is that of the tree of a snapshot, or of a folder in it that one transfer fills. None for any other.
    """
    above, _slash, last = path.rpartition("/")
    for levels, tree, part in ((1, path, ""), (2, above, last)):
        snapshot, _slash, name = tree.rpartition("/")
        folder = snapshot.rpartition("/")[2]
        if name == DATA and (folder == UNFINISHED or _NAME.fullmatch(once_accepted(folder))):
            return levels, part
    return None


def change_times_of(path: str) -> tuple[int, str] | None:
    """Return where the change times of a tree are: how many folders above it, and the name. ``path``: see part_of."""
    found = part_of(path)
    if found is None or not found[1]:
        return found and (found[0], CHANGE_TIMES)
    digest = hashlib.blake2b(found[1].encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return found[0], f"{CHANGE_TIMES}-{digest}"


def manifest_of(path: str) -> tuple[int, str] | None:
    """Return where the manifest of a tree is: how many folders above it, and the name. ``path``: see part_of."""
    found = part_of(path)
    return found and (found[0], MANIFEST)


def next_time(now: int, taken: Collection[int], newest: int | None) -> int:
    """Return the time that names a new snapshot. All in seconds since 1970.

    ``now`` where possible. ``taken`` are the times that cannot be used again. A clock that was set back by up to
    :data:`LARGEST_STEP` makes no snapshot that seems older than ``newest``: it comes a second behind. One that was
    set back further was wrong before, and is followed.
    """
    if newest is not None and now <= newest <= now + LARGEST_STEP:
        now = newest + 1
    while now in taken:
        now += 1
    return now


def base_of(seconds: int, complete: Collection[int]) -> int | None:
    """Return the time of the snapshot that one of ``seconds`` continues: the newest before it, else the newest."""
    before = [other for other in complete if other < seconds]
    return max(before or complete, default=None)


def latest_of(now: int, complete: Collection[int]) -> int | None:
    """Return the time of the snapshot that ``latest`` leads to: the newest, without those of a clock that was wrong.

    Those are more than :data:`LARGEST_STEP` ahead of now. Where there are no others, it is the newest of them.
    """
    return base_of(now + LARGEST_STEP + 1, complete)


def check_part(what: str, text: str) -> str:
    """Return the name of a host or a job unchanged. Raise Refused unless it is a valid visible file name."""
    if not text or text.startswith(".") or "/" in text or not text.isprintable() or len(text.encode()) > 200:
        raise Refused(
            f"the {what} '{text}' cannot be the name of a folder in the repository: it takes up to 200 bytes of "
            "printable characters without a slash, and does not begin with a dot"
        )
    return text
