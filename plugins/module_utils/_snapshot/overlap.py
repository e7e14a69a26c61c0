# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether two folders of this host are in each other, whatever their paths look like."""

from __future__ import annotations

import os


def overlap(one: str, other: str) -> bool:
    """Whether one of two paths leads to the other, or into it; either may be missing.

    Symbolic links are followed, and folders are compared by device and inode: bind mounts have the same.
    """
    return _is_within(one, other) or _is_within(other, one)


def _is_within(path: str, folder: str) -> bool:
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
