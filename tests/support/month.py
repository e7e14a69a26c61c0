# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Days of a source that is edited, backed up and pruned: what each cost, and what must be left in the end.

What the snapshots must be is said here by means of their own: the trees are recorded by ``compare``, the policy is
stated with the calendar of ``datetime``, and what a day must cost follows from two records.
"""

from __future__ import annotations

import datetime
import os
import stat
import time
from pathlib import Path
from typing import Any, Callable, Dict, Hashable, Iterator, List, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.facts import Figures
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.policy import Policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.prune import prune
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repository import Series

from . import compare

DAY = 86400

Record = Dict[bytes, compare.Found]
Transfer = Callable[[Path, str, List[str], List[str]], Any]  # source, destination, link_dest, link_dest_exclude


class Cost(NamedTuple):
    """Regular files, each once whatever its names, and the bytes in them."""

    files: int
    bytes: int


class Day(NamedTuple):
    """What one day was."""

    name: str  # of its snapshot
    changed: Cost  # by comparing the records of both days
    named: Cost  # the same for files that only got a further name
    new: Cost  # as the snapshot says, where such a name counts
    kept: list[str]  # names of the snapshots after the pruning
    seconds: float  # that the snapshot took


class Use(NamedTuple):
    """What a repository takes on the disk, each inode once."""

    files: Cost  # of the trees
    contents: int  # bytes that these allocate; so do the others
    folders: int
    records: int  # manifests and facts


class Month:
    """Days from ``first`` (seconds since 1970) on, which are pruned by counts for days, weeks and months."""

    def __init__(self, source: Path, repository: Path, transfer: Transfer, first: int, **keep: int) -> None:
        self.source, self.repository, self.transfer = source, repository, transfer
        self.first, self.keep = first, keep
        self.folder = repository / "host" / "job"
        self.made: list[int] = []
        self.figures = Figures()  # of the last day
        self.records: dict[str, Record] = {}  # of the days whose snapshots must still be there; so are
        self.versions: dict[str, dict[int, int]] = {}

    def live(self, days: int, edit: Callable[[int], None], *, pruned: bool = True) -> Iterator[Day]:
        """Edit, back up and prune every day, the first included; without ``pruned`` pruning is only predicted."""
        versions = Versions()
        for number in range(days):
            edit(number)
            record = compare.recorded(self.source)
            now = self.first + number * DAY
            begun = time.monotonic()
            figures = self._backup(now)
            seconds = time.monotonic() - begun
            self.made.append(now)
            name = names.name_of(now)
            self.records[name] = record
            self.versions[name], changed, named = versions.follow(record)
            kept = self.prune(now, check=not pruned)
            new = Cost(figures.new_files, figures.new_bytes)
            yield Day(name, changed, named, new, kept, seconds)

    def _backup(self, now: int) -> Figures:
        with Series(str(self.repository), "host", "job", create=True) as series, series.lock("test"):
            begun = begin(series, str(now), now)
            self.transfer(self.source, begun.path, begun.link_dest, begun.link_dest_exclude)
            done = finish(series, str(now), now + 60)
            assert done.facts is not None
            self.figures = done.facts.figures
            return self.figures

    def prune(self, now: int, check: bool = False) -> list[str]:
        """Prune; gives the names of those that stay."""
        with Series(str(self.repository), "host", "job") as series, series.lock("test"):
            kept = sorted(prune(series, Policy(**self.keep), now + 120, check=check).kept)
        if not check:
            for of_days in (self.records, self.versions):
                for name in of_days.keys() - set(self.expected()):
                    del of_days[name]
        return kept

    def expected(self) -> list[str]:
        """Return what the policy keeps of all snapshots that were ever made."""
        periods: dict[str, Callable[[datetime.datetime], Hashable]] = {
            "daily": lambda at: at.date(),
            "weekly": lambda at: at.isocalendar()[:2],
            "monthly": lambda at: (at.year, at.month),
        }
        kept = {max(self.made)}
        for rule, count in self.keep.items():
            newest = {}
            for at in sorted(self.made):
                newest[periods[rule](datetime.datetime.fromtimestamp(at, datetime.timezone.utc))] = at
            kept |= set(sorted(newest.values())[-count:])
        return [names.name_of(at) for at in sorted(kept)]

    def there(self) -> list[str]:
        """Return the names of the existing snapshots."""
        return sorted(name for name in os.listdir(self.folder) if name.startswith("2"))

    def differences(self, name: str) -> list[str]:
        """Compare a snapshot with the source as it was on its day."""
        return compare.differences(self.records[name], self.folder / name / "data")

    def restored_differences(self, name: str, place: str) -> list[str]:
        """Restore a snapshot to a new folder, and compare that with the source as it was on its day."""
        os.mkdir(place)
        self.transfer(self.folder / name / "data", place, [], [])
        return compare.differences(self.records[name], Path(place))

    def needed(self) -> Cost:
        """Return what the versions of files in the snapshots that must be there take, each once."""
        versions: dict[int, int] = {}
        for name in self.expected():
            versions.update(self.versions[name])
        return Cost(len(versions), sum(versions.values()))

    def use(self) -> Use:
        """Measure the repository."""
        seen = set()
        files, size, contents, folders, records = 0, 0, 0, 0, 0
        for folder, below, inside in os.walk(self.folder):
            is_tree = f"{os.sep}data{os.sep}" in folder[len(str(self.folder)) :] + os.sep
            for path in [folder, *(os.path.join(folder, name) for name in inside)]:
                status = os.lstat(path)
                if status.st_ino in seen:
                    continue
                seen.add(status.st_ino)
                allocated = status.st_blocks * 512
                if stat.S_ISDIR(status.st_mode):
                    folders += allocated
                elif not is_tree:
                    records += allocated
                elif stat.S_ISREG(status.st_mode):
                    files, size, contents = files + 1, size + status.st_size, contents + allocated
            below.sort()
        return Use(Cost(files, size), contents, folders, records)


class Versions:
    """Which contents with which attributes each file of a day is: the same as the day before, or a new version.

    A file with several names is looked up under the first in the order of a walk, as a transfer does it: one that gets
    a name before the others is sent again. One that gets a name behind them takes no room.
    """

    def __init__(self) -> None:
        self._before: Record = {}
        self._of: dict[bytes, int] = {}  # path -> version, on the last day
        self._last = 0

    def follow(self, after: Record) -> tuple[dict[int, int], Cost, Cost]:
        """Go on to the next day: the size of each version in it, what is new, and what only got a further name."""
        sizes: dict[int, int] = {}
        of: dict[bytes, int] = {}
        changed = named = Cost(0, 0)
        for path, found in after.items():
            paths = sorted(found.links or (path,), key=lambda name: name.replace(b"/", b"\0"))
            if found.type != "file" or path != paths[0]:
                continue
            if not self._has(path, found):
                self._last += 1
                version = self._last
                changed = Cost(changed.files + 1, changed.bytes + found.size)
            else:
                version = self._of[path]
                if not all(self._has(name, found) for name in paths):
                    named = Cost(named.files + 1, named.bytes + found.size)
            sizes[version] = found.size
            of.update(dict.fromkeys(paths, version))
        self._before, self._of = after, of
        return sizes, changed, named

    def _has(self, path: bytes, found: compare.Found) -> bool:
        old = self._before.get(path)
        return old is not None and old._replace(links=(), allocated=0) == found._replace(links=(), allocated=0)
