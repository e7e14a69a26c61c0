# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find what the destination has and the source has not, and remove it at the end.

Entries come as the walk gives them, a directory's contents right behind it. So the names of a directory are complete
as soon as an entry comes that is not below it: then it is compared with what is there. Only the names of the
directories on the way down and the paths of what is too much are held in memory.

What is in a directory where the source has something else is deleted as all deletions are: at the end, where the
options allow it, counted, and never what the filter rules protect. What replaces the directory waits for that.
"""

from __future__ import annotations

import errno
import os
from enum import Enum
from functools import partial
from typing import Any, Callable, NamedTuple

from ..._core.context import Context, staging_name
from ..._core.counted import entries_text
from ..._core.files import rewound
from ..._core.mounts import mounts_stay, points_below
from ..._core.outcome import Outcome
from ..._model.entry import DIRECTORY, Entry
from ..._model.filters import DEST, Filters
from ..._model.paths import escape, join
from ..._tree.dirfd import InTheWay, Root
from ..._tree.walk import walk

_CANNOT = "cannot delete non-empty directory"
_FILLED = f"{_CANNOT}: it was filled during the transfer. Run the transfer again"


class ListingScope(Enum):
    """The part of a directory that the source lists."""

    ALL = 1
    TAGS = 2  # files that leave out the rest of it
    NOTHING = 3  # of another file system


class Level(NamedTuple):
    """A directory on the way down."""

    path: bytes
    prefix: bytes  # of the paths of all that is in it
    is_new: bool  # made in this run: nothing can be below it
    names: set[bytes] | None  # in it, where others are too much
    is_tagged: bool = False  # others are too much only if a rule says so


class Deleter:
    """Finds what is too much while the entries come by, and removes it when told to."""

    def __init__(self, context: Context, root: Root) -> None:
        self._context, self._root = context, root
        self._filters = Filters.parse(context.settings["rules"])
        self._staging = os.fsencode(staging_name(context.settings["id"]))
        self.finds = bool(context.settings["delete"]) and not context.settings.get("only")
        points = points_below(os.fsdecode(context.root)) if self.finds else ()
        self.mounts = frozenset(map(os.fsencode, points))  # none is emptied, or removed
        self._levels: list[Level] = []
        self.found: list[tuple[bytes, bool]] = []  # path, is a directory
        self._problems: list[tuple[bytes, str]] = []  # directories that could not be listed
        self._replacements: dict[bytes, str] = {}  # by directory in the way: why it stays; empty if it goes
        self._is_over = False  # what may be deleted is deleted
        self._stays: dict[bytes, bytes] = {}  # mount points that the source has not, and the first folder above

    def see(self, entry: Entry) -> Level | None:
        """Take note of the next entry; gives the directory that it is in."""
        path = entry.path
        while self._levels:
            level = self._levels[-1]
            if path.startswith(level.prefix):
                break
            self._close(self._levels.pop())
        if not self._levels:
            return None
        level = self._levels[-1]
        if level.names is not None:
            level.names.add(path[len(level.prefix) :])
        return level

    def enter(self, path: bytes, is_new: bool, listed: ListingScope) -> None:
        """The entry was a directory: what comes next may be in it."""
        names: set[bytes] | None = set() if self.finds and not is_new and listed != ListingScope.NOTHING else None
        self._levels.append(Level(path, join(path, b""), is_new, names, listed == ListingScope.TAGS))

    def end(self) -> None:
        """There are no more entries."""
        while self._levels:
            self._close(self._levels.pop())

    def _close(self, level: Level) -> None:
        if level.names is None:
            return
        try:
            fd = self._root.open_directory(level.path)
        except (FileNotFoundError, NotADirectoryError):
            return  # only predicted (check mode), or gone
        except OSError as error:
            self._problems.append((level.path, f"cannot be listed: {error.strerror}"))
            return
        try:
            with os.scandir(rewound(fd)) as names:
                for item in names:
                    name = os.fsencode(item.name)
                    if name in level.names or name == self._staging:
                        continue
                    path, is_dir = join(level.path, name), item.is_dir(follow_symlinks=False)
                    if level.is_tagged and not self._filters.risks(path, is_dir):
                        continue
                    if path in self.mounts:
                        self._stay(path, path)
                    elif self._filters.allows(path, is_dir, DEST):
                        self.found.append((path, is_dir))
        except OSError as error:
            self._problems.append((level.path, f"cannot be listed: {error.strerror}"))
        finally:
            os.close(fd)

    def defer_replacement(self, entry: Entry, found: Entry) -> bool:
        """Return whether a directory with contents is in the place of an entry, which is deleted at the end.

        Raise InTheWay if it must stay.
        """
        path = entry.path
        try:
            self._root.clear_for(entry, found, check=True)
        except InTheWay:
            if path not in self._replacements:
                self._replacements[path] = self._why_it_stays(path)
            why = self._replacements[path] or (_FILLED if self._is_over else "")
            if why:
                raise InTheWay(errno.ENOTEMPTY, why, escape(path)) from None
        return path in self._replacements and not self._is_over

    def require_deleted(self, path: bytes) -> None:
        """Raise InTheWay if a directory in the way must stay, or could not be deleted."""
        why = self._replacements.get(path)
        if why:
            raise InTheWay(errno.ENOTEMPTY, why, escape(path))

    def _why_it_stays(self, path: bytes) -> str:
        if self._context.settings.get("only") is not None:  # a single file, for which nothing is deleted
            return f"{_CANNOT}: the source has a file here. Move the directory away"
        if not self.finds:
            return f"{_CANNOT}: the source has something else here. Set delete: true, or move the directory away"
        if self._is_over:
            return _FILLED
        if path in self.mounts:
            return f"{_CANNOT}: another file system is mounted here, and the source has a file. Unmount it"
        # The directory itself is replaced and not deleted, as rsync counts. Where something in it is protected, it
        # stays, and all else in it is too much all the same.
        self.found.append((path, True))
        if not any(victim.path == path for victim in below(self._root, path, self.keep)):
            return (
                f"{_CANNOT}: the source has something else here, and the filter rules protect what is in it. Move that "
                "away, or change the rules"
            )
        return ""

    def is_gone(self, path: bytes) -> bool:
        """Return whether check mode, which deletes nothing, must take the directory as deleted."""
        return self._context.settings["check"] and self._is_over and self._replacements.get(path) == ""

    def keep(self, path: bytes, is_dir: bool) -> bool:
        """Return whether something below a directory that is too much is protected nevertheless."""
        return path in self.mounts or not self._filters.allows(path, is_dir, DEST, removing=True)

    def _stay(self, point: bytes, top: bytes) -> None:
        """Take note of a mount point that stays, and of what the source has not on the way to it."""
        self._stays.setdefault(point, top)

    def count(self) -> int:
        """Return how many entries would go, as removing them counts."""
        return sum(len(self._victims(path)) if is_dir else 1 for path, is_dir in self.found)

    def finish(self, outcome: Outcome, clean: bool, source_is_empty: bool) -> None:
        """Remove what was found, where that is allowed; else ``outcome`` says why nothing was removed.

        There are no more entries. ``clean``: the source could be read completely. ``source_is_empty``: it has nothing
        but its root.
        """
        self.end()
        for path, problem in self._problems:
            outcome.error(escape(path), problem)
        if self._may_remove(outcome, clean, source_is_empty):
            self.remove(outcome)
        self._is_over = True
        for path, is_dir in self.found if self.mounts else ():
            for point in self.mounts if is_dir else ():
                if point.startswith(path + b"/"):
                    self._stay(point, path)
        if self._stays:
            outcome.kept_mounts = sorted({escape(top) for top in self._stays.values()})
            outcome.warnings.append(mounts_stay(sorted(escape(point) for point in self._stays)))

    def _may_remove(self, outcome: Outcome, clean: bool, source_is_empty: bool) -> bool:
        if not clean:
            self._keep_all("nothing is deleted, because the source could not be read completely")
            if self.found:
                outcome.warnings.append(
                    "nothing was deleted at the destination: the source could not be read completely, so what seems "
                    "to be too much may only be unreadable there"
                )
            return False
        allowed: int | None = self._context.settings["max_delete"]
        is_all = allowed is None and source_is_empty and bool(self.found)
        number = self.count() if is_all or allowed is not None else 0
        if not is_all and number <= (allowed or 0):
            return True
        self._keep_all("nothing is deleted: there are more deletions than max_delete allows")
        if is_all:
            outcome.failure = (
                f"the source is empty and the destination is not: {entries_text(number)} would be deleted, and "
                "none was. Is the source's file system mounted? Where it is meant to be so, set max_delete to that "
                "number"
            )
        else:
            outcome.failure = (
                f"{entries_text(number)} would be deleted at the destination, and max_delete allows {allowed} to be "
                "deleted: none was. Look at them with check mode and diff; then raise max_delete, or protect them by "
                "a filter"
            )
        return False

    def _keep_all(self, why: str) -> None:
        for path in self._replacements:
            self._replacements[path] = f"{_CANNOT}: {why}"

    def _victims(self, top: bytes) -> list[Entry]:
        found = below(self._root, top, self.keep)
        return (
            [entry for entry in found if entry.path not in self._replacements] if top in self._replacements else found
        )

    def remove(self, outcome: Outcome) -> None:
        """Remove everything that was found (or list it, in check mode); what fails is an error of its own."""
        limit = int(self._context.settings["changes_max"])

        def tell(path: bytes, kind: str) -> None:
            if path in self._replacements:
                return
            outcome.files_deleted += 1
            outcome.change(f"*deleting   {escape(path)}{'/' if kind == DIRECTORY else ''}", limit)

        for path, is_dir in self.found:
            if self._context.settings["check"]:
                for victim in self._victims(path) if is_dir else []:
                    tell(victim.path, victim.type)
                if not is_dir:
                    tell(path, "f")
                continue
            try:
                self._root.remove(path, keep=self.keep, on_removed=tell, on_mount=partial(self._stay, top=path))
            except FileNotFoundError:
                pass
            except OSError as error:
                if path in self._replacements:
                    self._replacements[path] = f"{_CANNOT}: {error.strerror or error}"
                else:
                    outcome.error(escape(path), f"cannot be deleted: {error.strerror or error}")


class _Below:
    """Filters for a walk that starts below the root, and takes note which directories would not become empty."""

    def __init__(self, top: bytes, keep: Callable[[bytes, bool], bool]) -> None:
        self._top, self._keep = top, keep
        self.stay: set[bytes] = set()

    def allows(self, path: bytes, is_dir: bool, _side: str) -> bool:
        full = join(self._top, path)
        if not self._keep(full, is_dir):
            return True
        while full:
            full = full.rpartition(b"/")[0]
            self.stay.add(full)
        return False


def below(root: Root, top: bytes, keep: Callable[[bytes, bool], bool] = lambda _path, _is_dir: False) -> list[Entry]:
    """List a directory and what is in it as Root.remove would remove it, the deepest first."""
    filters: Any = _Below(top, keep)  # it answers what a walk asks of Filters
    try:
        folder = root.open_directory(top)
    except OSError:
        return []
    try:
        found = [
            entry._replace(path=join(top, entry.path) if entry.path else top)
            for entry in walk(folder, filters=filters, side=DEST, on_error=lambda _path, _error: None)
        ]
    finally:
        os.close(folder)
    return [entry for entry in reversed(found) if entry.path not in filters.stay]
