# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors of snapshots, with a text for the user. Private to the collection."""

from __future__ import annotations

import errno

from .._core.disk_full import FULL


class Refused(Exception):
    """What was asked for is not done; the text says what was found, why it matters, and what to do."""


class Busy(Refused):
    """Another run is at work on the snapshots of the job at this moment."""


class TreeMismatch(Exception):
    """The tree of the unfinished snapshot is not the expected one, so it stays unfinished."""


def unexpected(error: OSError, where: str) -> Refused:
    """Return the refusal for an operation that failed in the repository at ``where``."""
    what = error.strerror or str(error)
    if error.filename is not None:
        name = error.filename if isinstance(error.filename, str) else repr(error.filename)
        what += f" ({name})"
    if error.errno in FULL:
        advice = "Its file system has no space or no inodes left (see df and df -i): make room, by prune for instance"
    elif error.errno == errno.EROFS:
        advice = "Its file system is read-only: look into the system's log for why, and mount it writable"
    elif error.errno == errno.EIO:
        advice = "Its disk does not read or write: look into the system's log"
    else:
        advice = "Set that right"
    return Refused(
        f"the repository {where} cannot be worked on: {what}. Complete snapshots are as they were, and an unfinished "
        f"one is kept. {advice}, and run this again to resume"
    )
