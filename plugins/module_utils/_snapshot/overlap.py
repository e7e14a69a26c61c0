# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The destination of a restore on this host: whether it and the repository are in each other, and what is there."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from .._tree.descent import open_root
from .._tree.resolve import real_path, resolve


class Destination(NamedTuple):
    """The destination of a restore, as this host finds it."""

    overlaps: bool  # with the repository
    dest: str  # without symbolic links
    free: bool  # nothing or an empty folder is at the path that the restore occupies


def inspect_destination(repository: str, dest: str, occupies: str) -> Destination:
    """Return the state of the folder ``dest``, in which the path ``occupies`` would be made.

    Raises TransferFailed for a symbolic link that is not followed, and OSError.
    """
    real, free = os.fsdecode(real_path(os.fsencode(dest))), _is_free(occupies)
    return Destination(overlap(repository, real), real, free)


def overlap(one: str, other: str) -> bool:
    """Return whether one of two paths leads to the other, or into it; either may be missing.

    Symbolic links are followed, and folders are compared by device and inode: bind mounts have the same.
    """
    return is_within(one, other) or is_within(other, one)


def is_within(path: str, folder: str) -> bool:
    """Return whether a path leads to a folder or into it; as ``overlap`` compares them."""
    try:
        wanted = os.stat(folder)
    except OSError:
        return False
    at = os.path.realpath(path)
    while True:
        try:
            if os.path.samestat(os.stat(at), wanted):
                return True
        except OSError:
            pass  # nothing is there, or nobody may look: what is above it counts
        if at == os.path.dirname(at):
            return False
        at = os.path.dirname(at)


def _is_free(path: str) -> bool:
    found = resolve(os.fsencode(path))
    try:
        if found.error is not None:
            raise found.error
        if found.status is None or not stat.S_ISDIR(found.status.st_mode):
            return found.status is None
        fd = open_root(found.fd)
        try:
            return not os.listdir(fd)
        finally:
            os.close(fd)
    finally:
        os.close(found.fd)
