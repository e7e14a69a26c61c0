# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modification times on file systems that keep them coarser than in nanoseconds. Private to the collection. Pure.

ext4 with inodes of 128 bytes keeps seconds, FAT two seconds, exFAT ten milliseconds, CIFS and some NFS servers 100
nanoseconds. Such a file system cuts a time off; so two times are the same there if they are in the same unit.
:class:`TimeUnits` is the only place that decides this, for transfers, ``link_dest``, comparisons and manifests.
"""

from __future__ import annotations

from typing import Mapping

from .._core.settings import COARSEST
from .entry import Entry
from .paths import unescape


class TimeUnits:
    """The unit of modification times below a root, in nanoseconds, by the paths where another one begins.

    ``told`` has escaped paths, as settings and outcomes do; empty: nanoseconds everywhere.
    """

    def __init__(self, told: Mapping[str, int]) -> None:
        self._units = {unescape(path): unit for path, unit in told.items()}

    def __bool__(self) -> bool:
        """Return whether times are coarse anywhere."""
        return any(unit > 1 for unit in self._units.values())

    def at(self, path: bytes) -> int:
        """Return the unit at a path."""
        units = self._units
        while path and path not in units:
            path = path.rpartition(b"/")[0]
        return units.get(path, 1)

    def stored(self, path: bytes, time_ns: int) -> int:
        """Return a time as the file system at a path keeps it."""
        return time_ns - time_ns % self.at(path) if self._units else time_ns

    def is_same(self, path: bytes, one_ns: int, other_ns: int) -> bool:
        """Return whether two times are the same where the file system at a path keeps them."""
        return one_ns == other_ns or (
            abs(one_ns - other_ns) < COARSEST and self.stored(path, one_ns) == self.stored(path, other_ns)
        )

    def as_found(self, wanted: Entry, found: Entry) -> Entry:
        """Return the wanted entry with the time of what is found at its path, if that is the same there."""
        if wanted.mtime_ns == found.mtime_ns or not self.is_same(found.path, wanted.mtime_ns, found.mtime_ns):
            return wanted
        return wanted._replace(mtime_ns=found.mtime_ns)
