# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make the unfinished snapshot a complete one. Private to the collection.

The order is what makes it safe: the tree and its manifest are on the disk before one rename makes them a snapshot, and
``latest`` moves behind that. A kill before the rename leaves an unfinished snapshot, a kill behind it a complete one.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from .._core.counted import counted
from .._core.durability import sync_file_system
from .._core.files import rewound
from .._model.entry_codec import ManifestError
from .._model.paths import escape
from .._tree.content_hash import common_algorithm, speeds
from .._tree.dirfd import Root
from .._tree.record import Describer
from . import names
from .atomic_io import replacing, write_json
from .begin import finished_by, unfinished_facts
from .build_manifest import ManifestTotals, build_manifest
from .damage import Damage, file_at, known_damage
from .errors import Refused, TreeMismatch
from .facts import COPY, DAMAGED, RSNAPSHOT, CheckRecord, Facts, Finding, Past
from .history import ADOPTED, ASIDE, COPIED, MADE, event_of, note
from .manifest import About, ManifestReader, ManifestWriter
from .prove_copy import CopyMismatch, ProvingWriter, arrived_manifest, describer_for, drop_unproven
from .read_only import make_read_only
from .repository import Series, SnapshotFolder
from .suspicion import ALL_ALLOWED, ChangeLimits, remember, suspicion

if TYPE_CHECKING:
    from .build_manifest import Beside

_MAX_EXAMPLES = 3  # paths in a message
_ACTS = {RSNAPSHOT: ADOPTED, COPY: COPIED}  # by origin


class SnapshotOutcome(NamedTuple):
    """What became of the snapshot."""

    changed: bool
    name: str  # empty in check mode, where nothing was begun
    aside: str  # why it was set aside; empty if it is complete
    facts: Facts | None  # None if nothing was begun
    warnings: list[str]
    unproven: tuple[
        str, ...
    ] = ()  # paths of a copy, escaped, that its manifest does not describe: nothing was completed


def finish(
    series: Series,
    run: str,
    now: int,
    *,
    limits: ChangeLimits = ALL_ALLOWED,
    expected_entries: int | None = None,
    expected_bytes: int | None = None,
    beside: Beside | None = None,
    read_only: bool = False,
    copied_from: str = "",
    check: bool = False,
) -> SnapshotOutcome:
    """Finish the snapshot that the run with this token began; a second time it changes nothing.

    A copy must be what the manifest says that came with it. Names that are not are removed, to be sent again, and it
    stays unfinished. ``copied_from`` is the other repository, for the history.

    ``expected_entries`` and ``expected_bytes`` are what the transfer counted: entries with the root, and the bytes of
    all regular files, with or without the targets of symbolic links. The lock is the caller's. Raises Refused if
    that is not what is there, where another run took the snapshot over, and where the tree cannot be read; then it
    stays unfinished. ``read_only`` makes the folders of the tree immutable, and those of earlier snapshots where a kill
    prevented that. ``beside`` sees each entry in the same walk; raise TreeMismatch if the tree is not equal for it.
    """
    facts = unfinished_facts(series)
    if not facts or facts.run != run:
        if check and expected_entries == 1 and limits.shrink < 100 and not series.times():
            raise _empty()
        return _finished_before(series, run, now, facts, check)
    with contextlib.ExitStack() as stack:
        unfinished = stack.enter_context(series.snapshot(names.UNFINISHED))
        before, aside_base = (_open_older(series, name, stack) for name in (facts.base, facts.aside_base))
        damages = [(older, known_damage(series, older.name)) for older in (before, aside_base) if older is not None]
        arrived = stack.enter_context(arrived_manifest(unfinished)) if facts.origin == COPY and not check else None
        algorithm = arrived.algorithm if arrived is not None else _algorithm(before or aside_base)
        trees = Trees(unfinished, before, aside_base, algorithm)
        if check:
            totals, problem = trees.take(None)
        else:
            series.step("sync")
            sync_file_system(unfinished.fd)
            series.step("manifest")
            try:
                totals, problem = _write_manifest(series, trees, beside, arrived)
            except CopyMismatch as found:
                drop_unproven(unfinished, found.paths)
                return SnapshotOutcome(True, "", "", None, [], tuple(map(escape, found.paths)))
        _reconcile(totals, expected_entries, expected_bytes)
        if totals.entries == totals.folders and limits.shrink < 100 and not series.times():
            raise _empty()
        healed, linked = _compare_damaged(unfinished, damages)
        is_healed = any(older is before and damage.is_everywhere for older, damage in damages)
        totals.healed = totals.new_files if is_healed else len(healed)
        at = facts.time if facts.origin == COPY else names.next_time(facts.time, series.all_times(), None)
        past = _past_of(before)
        figures = totals.figures()
        aside = suspicion(figures, past, limits)
        complete = facts._replace(
            time=at,
            algorithm=algorithm,
            finished=now,
            aside=aside,
            figures=figures,
            past=remember(names.name_of(at), figures, past),
            read_only=read_only,
        )
        name = names.name_of(at, names.ASIDE if aside else names.COMPLETE)
        if not check:
            series.step("facts")
            if linked:  # a check must not take them for intact before it reads them
                findings = tuple(Finding(DAMAGED, path) for path in linked)
                write_json(unfinished.fd, names.CHECKED, CheckRecord(findings=findings).dump())
            write_json(unfinished.fd, names.FACTS, complete.dump())
            if facts.origin == COPY:  # the transfer gave the folder what it has in the other repository
                _make_own(unfinished)
            series.step("rename")
            series.rename(names.UNFINISHED, name)
            act = ASIDE if aside else _ACTS.get(facts.origin, MADE)
            note(series, event_of(series, act, name, now, aside or facts.adopted or copied_from))
            series.step("settle")
            series.settle(now)
    warnings = _warnings(totals, problem, facts, healed, linked)
    if read_only and not check:
        warnings += make_read_only(series)[1]
    return SnapshotOutcome(True, name, aside, complete, warnings)


def _make_own(copied: SnapshotFolder) -> None:
    """Leave in the folder of a copy only what belongs there, and give it to this user.

    Transfers that were interrupted have left their own folders, and the last one has set the attributes that the folder
    has in the other repository.
    """
    own = (names.DATA, names.MANIFEST, names.FACTS, names.CHECKED)
    with Root(copied.fd) as root:
        for name in set(os.listdir(rewound(copied.fd))) - set(own):
            root.remove(os.fsencode(name))
    os.fchown(copied.fd, os.geteuid(), os.getegid())
    os.fchmod(copied.fd, 0o755)


def _finished_before(series: Series, run: str, now: int, facts: Facts | None, check: bool) -> SnapshotOutcome:
    """Find the snapshot that this run finished already, and put right what was left to do behind the rename."""
    done = finished_by(series, run)
    if done is not None:
        name, found = done
        settled = series.settle(now, check)
        changed, warnings = make_read_only(series) if found.read_only and not check else (False, [])
        return SnapshotOutcome(settled or changed, name, found.aside or "", found, warnings)
    if check:  # nothing was begun, because beginning was only predicted, too
        return SnapshotOutcome(True, "", "", None, [])
    if facts:
        raise Refused(
            "another run has taken over the unfinished snapshot and continues from what this run had transferred. "
            "Nothing is lost: leave it to that run"
        )
    raise Refused(f"there is no unfinished snapshot of this run in {series.path}: begin one first")


def _empty() -> Refused:
    return Refused(
        "the source has no files, and there is no earlier snapshot. Most likely a file system is not mounted there, "
        "the path is wrong, or rules exclude everything, so nothing was completed. Correct that, and run it again. If "
        "an empty source is right, set shrink_limit to 100 for this job"
    )


def _open_older(series: Series, name: str, stack: contextlib.ExitStack) -> SnapshotFolder | None:
    """Open a snapshot of which the facts know, which may have been accepted meanwhile, or discarded."""
    for place in dict.fromkeys((name, names.once_accepted(name))):
        if names.kind_of(place):
            with contextlib.suppress(FileNotFoundError):
                return stack.enter_context(series.snapshot(place))
    return None


def _past_of(before: SnapshotFolder | None) -> tuple[Past, ...]:
    """Return what later snapshots are judged by; of versions before 0.3.0 that is the snapshot before alone."""
    with contextlib.suppress(Refused, OSError):
        facts = before.facts() if before is not None else None
        if before is not None and facts is not None:
            return facts.past or remember(before.name, facts.figures, ())
    return ()


def _compare_damaged(
    unfinished: SnapshotFolder, damages: list[tuple[SnapshotFolder, Damage]]
) -> tuple[list[str], list[str]]:
    """Return the paths of known damage whose files are others than before, and those that are the same files."""
    healed: set[str] = set()
    linked: set[str] = set()
    for older, damage in damages:
        if damage.paths:
            with unfinished.tree() as new, older.tree() as old:
                for path in damage.paths:
                    now, then = file_at(new, path), file_at(old, path)
                    if now is not None:
                        is_same = then is not None and (now.dev, now.ino) == (then.dev, then.ino)
                        (linked if is_same else healed).add(escape(path))
    return sorted(healed - linked), sorted(linked)


def _algorithm(before: SnapshotFolder | None) -> str:
    """Return the algorithm of the snapshot before, so that its hashes can be taken over; else the fastest here."""
    if before is not None:
        with contextlib.suppress(ManifestError, OSError), before.manifest() as manifest:
            return manifest.algorithm
    return common_algorithm(speeds())


class Trees(NamedTuple):
    """The snapshot that is finished, and the older ones that its files may be linked to."""

    unfinished: SnapshotFolder
    before: SnapshotFolder | None
    aside: SnapshotFolder | None
    algorithm: str

    def take(self, writer: ManifestWriter | None, beside: Beside | None = None) -> tuple[ManifestTotals, str]:
        """Read the tree, as ``build_manifest`` does."""
        data_fd = self.unfinished.open_data()
        try:
            return build_manifest(data_fd, self.before, self.algorithm, writer, beside, self.aside)
        finally:
            os.close(data_fd)

    def describer(self) -> Describer:
        """Return what compares the entries of the tree with a manifest."""
        data_fd = self.unfinished.open_data()
        try:
            return describer_for(data_fd)
        finally:
            os.close(data_fd)


def _write_manifest(
    series: Series, trees: Trees, beside: Beside | None, arrived: ManifestReader | None
) -> tuple[ManifestTotals, str]:
    about = About(trees.algorithm, series.host, series.job)
    with replacing(trees.unfinished.fd, names.MANIFEST) as file:
        if arrived is None:
            writer = ManifestWriter(file, about)
        else:
            writer = ProvingWriter(file, about, arrived, trees.describer())
        totals, problem = trees.take(writer, beside)
        if isinstance(writer, ProvingWriter):
            writer.conclude()
        if beside is not None and not beside.is_equal:
            raise TreeMismatch
        writer.finish({"entries": totals.entries, "files": totals.files, "bytes": totals.bytes})
        series.step("manifest in place")
    return totals, problem


def _reconcile(totals: ManifestTotals, entries: int | None, size: int | None) -> None:
    # The methods of rsync count the targets of symbolic links, as rsync itself does, and the others do not.
    found = (
        ("entries", entries, (totals.entries,)),
        ("bytes", size, (totals.bytes, totals.bytes + totals.link_bytes)),
    )
    wrong = [
        f"{there[0]} {what} where the transfer counted {counted}"
        for what, counted, there in found
        if counted not in (None, *there)
    ]
    if wrong:
        raise Refused(
            f"the unfinished snapshot has {' and '.join(wrong)}. So it is not what the source was, and it is not made "
            "a complete one; it stays as it is. Run the backup again to resume. Where it says this "
            "again, another set of paths was begun there before: discard the unfinished snapshot"
        )


def _warnings(totals: ManifestTotals, problem: str, facts: Facts, healed: list[str], linked: list[str]) -> list[str]:
    warnings = []
    if totals.healed:
        warnings.append(
            f"healed {counted(totals.healed, 'file', 'files')}, in which a check of {facts.base} had found damage: "
            f"the source sent {'it' if totals.healed == 1 else 'them'} again{_examples(healed)}. Older snapshots have "
            "the damage still"
        )
    if linked:
        warnings.append(
            f"{counted(len(linked), 'file is one', 'files are those')} of {facts.base}, in which a check had found "
            f"damage{_examples(linked)}. Give the transfer the link_dest_exclude that begin returned, and back up again"
        )
    if problem:
        warnings.append(
            f"the manifest of {facts.base} cannot be used: {problem}. So every file was read, and neither what is "
            "new nor whether too much is gone since then is known. Check that snapshot"
        )
    if totals.unreadable:
        warnings.append(
            f"{counted(totals.unreadable, 'file', 'files')} of the snapshot cannot be read by this user, so the "
            "manifest has no hash of the contents and a check cannot tell whether they are intact: "
            f"{', '.join(totals.unreadable_paths)}"
        )
    return warnings


def _examples(paths: list[str]) -> str:
    """Return the first of some paths in brackets; an empty string for none."""
    more = f" and {len(paths) - _MAX_EXAMPLES} more" if len(paths) > _MAX_EXAMPLES else ""
    return f" ({', '.join(repr(path) for path in paths[:_MAX_EXAMPLES])}{more})" if paths else ""
