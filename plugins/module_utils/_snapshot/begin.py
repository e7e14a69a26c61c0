# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Begin a snapshot, or resume an interrupted one. Private to the collection.

There is one unfinished snapshot at most, always under the same name, so a transfer into it that is run again is the
same transfer and finds what it had. Who begins leaves a token in it, and only who has the token can finish.
"""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Iterator, NamedTuple

from .._core.files import rewound
from .._model.entry import DIRECTORY, Entry
from .._model.entry_codec import ManifestError
from .._model.paths import escape, join
from .._tree.dirfd import Root
from .._tree.walk import walk
from . import names
from .atomic_io import write_json
from .damage import known_damage
from .errors import Busy, Refused
from .facts import COPY, RSNAPSHOT, TRANSFER, Facts
from .repository import Series


class Begun(NamedTuple):
    """What a transfer must know to fill the snapshot, and what was done."""

    changed: bool
    name: str  # that it will have
    resumed: bool
    base: str  # the name of the snapshot before; empty for the first
    path: str  # where the tree belongs; for a copy the folder above it, since the manifest comes along
    link_dest: list[str]  # trees that files may be linked to, the newest first; for a copy the folders above them
    link_dest_exclude: list[str]  # paths in them, escaped, that are known to be damaged
    finished: bool = False  # this run finished its snapshot already, and there is nothing to transfer


def begin(
    series: Series,
    run: str,
    now: int,
    writer: Callable[[str], str | None] = lambda path: None,
    *,
    ended: str | None = None,
    takeover: bool = False,
    copy_of: str = "",
    check: bool = False,
) -> Begun:
    """Make the unfinished snapshot, or take over the one that is there, for the run with the token ``run``.

    ``copy_of`` is the name of the snapshot of another repository that it is to be a copy of, with its manifest.

    ``now`` is in seconds since 1970. ``writer`` says who writes to a path at this moment. ``ended`` is the token of a
    run that will not come back: where its transfer is still writing, this run continues it. With ``takeover`` this run
    continues that of any run. The lock is the caller's. Raises Busy if another run's transfer is still writing.
    """
    tree = "" if copy_of else names.DATA
    path = os.path.join(series.path, names.UNFINISHED, tree).rstrip("/")
    settled = series.settle(now, check)
    done = finished_by(series, run)
    if done is not None:
        name, facts = done
        return Begun(settled, name, False, facts.base, os.path.join(series.path, name, tree), [], [], True)
    complete = series.times()
    taken = series.all_times()
    at = (
        _copied_time(series, copy_of, taken) if copy_of else names.next_time(now, taken, names.latest_of(now, complete))
    )
    resumed = series.has(names.UNFINISHED)
    old = unfinished_facts(series) if resumed else None
    if old and old.origin == RSNAPSHOT:
        raise Refused(
            f"the adoption of rsnapshot's {old.adopted} was interrupted: run adopt_rsnapshot again, which "
            "completes it, or discard the unfinished snapshot"
        )
    holder = unfinished_writer(series, writer) if resumed else None
    own = [token for token in (run, ended) if token]
    if holder is not None and not takeover and (old.run if old else None) not in own:
        raise Busy(
            f"{holder} is writing to the unfinished snapshot {path} at this moment, for another run. Two runs of one "
            "job would undo each other's work; nothing was changed. Wait for it to end, and run this again"
        )
    # The tree is of the time when its transfer began, which is another's where this run only continues that.
    if not copy_of and old and (old.run == run or holder is not None) and old.time not in taken:
        at = old.time
    base, is_basis = _base_of(series, at, complete)
    aside = "" if copy_of else _aside_base_of(series, at, base)
    base_name = "" if base is None else names.name_of(base)
    facts = Facts(series.host, series.job, COPY if copy_of else TRANSFER, run, at, base_name, aside_base=aside)
    changed = settled or facts != old
    if not check:
        changed |= _write(series, facts, old, holder is not None)
    elif resumed:
        changed |= _touch(series, old, holder is not None, check=True)
    link_dest: list[str] = []
    damaged: set[bytes] = set()
    for name in ([aside] if aside else []) + ([facts.base] if is_basis else []):
        damage = known_damage(series, name)
        if not damage.is_everywhere:
            link_dest.append(os.path.join(series.path, name, tree).rstrip("/"))
            damaged |= damage.paths
    if copy_of:
        damaged = {os.fsencode(names.MANIFEST), *(join(os.fsencode(names.DATA), one) for one in damaged)}
    return Begun(changed, names.name_of(at), resumed, facts.base, path, link_dest, sorted(map(escape, damaged)))


def _copied_time(series: Series, name: str, taken: set[int]) -> int:
    """Return the time of a snapshot that is to be copied here under its own name. Raises Refused if that is taken."""
    at = names.time_of(name)
    if at is None:
        raise Refused(f"'{name}' is no name of a complete snapshot, and no other is copied")
    if at in taken:
        raise Refused(
            f"{series.path} has the name {name} already, of a snapshot or of what is left of one: let a prune remove "
            "what is left, or discard the one that was set aside"
        )
    return at


def unfinished_writer(series: Series, writer: Callable[[str], str | None]) -> str | None:
    """Return who writes to the unfinished snapshot; None if nobody does. ``writer`` is asked with a path.

    A transfer fills its tree, or all of its folder where it copies a snapshot with its manifest.
    """
    place = os.path.join(series.path, names.UNFINISHED)
    return writer(os.path.join(place, names.DATA)) or writer(place)


def _aside_base_of(series: Series, at: int, base: int | None) -> str:
    """Return the newest snapshot before ``at`` that was set aside after ``base``; empty if there is none.

    The source has most likely still what it had then. Nothing is judged by it.
    """
    for other in reversed(series.times(names.ASIDE)):
        name = names.name_of(other, names.ASIDE)
        if (base or 0) < other < at and _is_vouched_for(series, name):
            return name
    return ""


def _base_of(series: Series, at: int, complete: list[int]) -> tuple[int | None, bool]:
    """Return the time of the snapshot that one of ``at`` continues, and whether files may be linked to it.

    That is the newest before it whose manifest is intact: nothing else says what the contents of its files must be.
    """
    left = list(complete)
    while (base := names.base_of(at, left)) is not None:
        if _is_vouched_for(series, names.name_of(base)):
            return base, True
        left.remove(base)
    return names.base_of(at, complete), False


def _is_vouched_for(series: Series, name: str) -> bool:
    """Return whether the manifest of a snapshot is intact."""
    try:
        with series.snapshot(name) as snapshot, snapshot.manifest() as manifest:
            manifest.verify()
    except (ManifestError, OSError):
        return False
    return True


def _write(series: Series, facts: Facts, old: Facts | None, busy: bool) -> bool:
    """Put the unfinished snapshot in order; says whether something was left in it that had to go."""
    series.step("begin")
    with contextlib.suppress(FileExistsError):
        os.mkdir(names.UNFINISHED, 0o755, dir_fd=series.fd)
        os.fsync(series.fd)
    touched = _touch(series, old, busy)
    with series.snapshot(names.UNFINISHED) as unfinished:
        series.step("data")
        with contextlib.suppress(FileExistsError):
            os.mkdir(names.DATA, 0o700, dir_fd=unfinished.fd)
        series.step("claim")
        if facts != old:
            write_json(unfinished.fd, names.FACTS, facts.dump())
    return touched


def _touch(series: Series, old: Facts | None, busy: bool, *, check: bool = False) -> bool:
    """Take out what an interrupted run left and must not stay; says whether there was something.

    ``busy``: the run's own transfer is still at work, and knows best what is in the tree.
    """
    with contextlib.ExitStack() as stack:
        unfinished = stack.enter_context(series.snapshot(names.UNFINISHED))
        arrives = busy and old is not None and old.origin == COPY  # the manifest, by that transfer
        own = (names.CHECKED,) if arrives else (names.MANIFEST, names.CHECKED)
        root = stack.enter_context(Root(unfinished.fd))
        stale = [name for name in own if root.lstat(os.fsencode(name)) is not None]
        data = root.lstat(os.fsencode(names.DATA))
        if data is not None and data.type != DIRECTORY and not busy:  # of a repository that must not be trusted
            stale.append(names.DATA)
        for name in stale if not check else ():
            root.remove(os.fsencode(name))  # of a run that was killed while it finished
        if busy or data is None or data.type != DIRECTORY:
            return bool(stale)
        data_fd = unfinished.open_data()
        stack.callback(os.close, data_fd)
        base_fd = None
        if old and names.time_of(old.base) is not None:
            with contextlib.suppress(FileNotFoundError):
                base_fd = stack.enter_context(series.snapshot(old.base)).open_data()
                stack.callback(os.close, base_fd)
        return _break_hardlinks(data_fd, base_fd, check=check) or bool(stale)


def finished_by(series: Series, run: str) -> tuple[str, Facts] | None:
    """Return name and facts of the snapshot, complete or set aside, that this run finished; None without one."""
    for kind in (names.COMPLETE, names.ASIDE):
        for name in reversed(series.named(kind)):
            with contextlib.suppress(Refused, OSError), series.snapshot(name) as snapshot:
                facts = snapshot.facts()
                if facts.run == run:
                    return name, facts
    return None


def is_blank(series: Series) -> bool:
    """Return whether the unfinished snapshot was left by a kill before its facts were written or files arrived."""
    with series.snapshot(names.UNFINISHED) as unfinished:
        try:
            data_fd = unfinished.open_data()
        except FileNotFoundError:
            return not unfinished_facts(series)
        try:
            return not unfinished_facts(series) and not os.listdir(rewound(data_fd))
        finally:
            os.close(data_fd)


def unfinished_facts(series: Series) -> Facts | None:
    """Return the facts of the unfinished snapshot; None if a kill left none."""
    try:
        with series.snapshot(names.UNFINISHED) as unfinished:
            return unfinished.facts()
    except (FileNotFoundError, Refused):
        return None


def _break_hardlinks(data_fd: int, base_fd: int | None, *, check: bool = False) -> bool:
    """Unlink every name of the tree whose file has names elsewhere, too; return whether there were any.

    A file that an interrupted run linked to the snapshot before is one file in both: if the source changed since, a
    transfer that goes on would set the mode or time of that file, and so change a complete snapshot. The transfer makes
    these links again where nothing changed, which costs no data.

    With ``check`` nothing is changed. ``base_fd`` is the tree that names were linked to, if it is still there.
    What is linked only within the tree stays: memory is needed for those alone. Raises OSError if the tree cannot be
    read or written.
    """
    found = False
    with contextlib.ExitStack() as stack:
        tree = stack.enter_context(Root(data_fd))
        base = None if base_fd is None else stack.enter_context(Root(base_fd))
        for entry in _linked(data_fd) if base is not None else ():
            other = None if base is None else base.lstat(entry.path)
            if other is not None and (other.dev, other.ino) == entry.link_id:
                found = True
                if check:
                    return True
                tree.remove(entry.path)
        counts: dict[tuple[int, int] | None, int] = {}
        for entry in _linked(data_fd):
            counts[entry.link_id] = counts.get(entry.link_id, 0) + 1
        for entry in _linked(data_fd) if counts else ():
            left = counts.get(entry.link_id, 0)
            if left < entry.nlink:
                found = True
                if check:
                    return True
                counts[entry.link_id] = left - 1  # as the file has one name fewer now
                tree.remove(entry.path)
    return found


def _linked(data_fd: int) -> Iterator[Entry]:
    def fail(_path: bytes, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    return (entry for entry in walk(data_fd, on_error=fail) if entry.link_id is not None and entry.type != DIRECTORY)
