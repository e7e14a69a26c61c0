# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A check from the choice of snapshots to what is remembered of it. Private to the collection."""

from __future__ import annotations

import contextlib
import itertools
from typing import Mapping

from .._model.paths import unescape
from . import names
from .atomic_io import read_json, write_json
from .check import CONTENTS, STRUCTURE, Report, check_files, check_names, check_structure, still_there
from .check_contents import check_contents
from .errors import Refused
from .facts import DAMAGED, KNOWN_DAMAGE, CheckRecord, ContentCheckTimes, Finding
from .repository import Series, SnapshotFolder
from .subset import ALL, NONE, Subset, Turn, next_subset, parse_turn

_REMEMBERED = 1 << 20  # bytes of paths; with more, the whole snapshot is in doubt
_TOLD = 5  # paths in a message
_CONTENTS_KINDS = (DAMAGED, "unreadable")  # that only reading finds


def check(
    series: Series,
    level: str,
    now: int,
    subset: tuple[int, int] = (1, 1),
    only: list[str] | None = None,
    *,
    record: bool = True,
) -> tuple[Report, Subset]:
    """Check the snapshots of a job, or those named in ``only``; gives what was found, and the subset that was read.

    The lock must not be held: a check may take hours. With ``record`` it is remembered when what was checked, in each
    snapshot and for the turn of the subsets. Raises Refused for a name that is no snapshot.
    """
    report = Report()
    turn: Turn | None = None
    part = ALL
    if level == CONTENTS:
        part, turn = next_subset(*subset, _last_turn(series))
    with contextlib.ExitStack() as stack:
        snapshots = [stack.enter_context(found) for found in _opened(series, only, report)]
        report.snapshots = [snapshot.name for snapshot in snapshots]
        check_names(series, report)
        usable = [snapshot for snapshot in snapshots if check_structure(series, snapshot, report)]
        newest = names.latest_of(now, series.times())
        looked_at = [
            snapshot
            for snapshot in usable
            if level != STRUCTURE and (only is not None or _is_looked_at(snapshot.name, newest, part))
        ]
        for snapshot in looked_at:
            _unless_gone(series, snapshot, report)
        usable = [snapshot for snapshot in usable if snapshot.name in report.snapshots]
        if level == CONTENTS or any(problem.path is not None for problem in report.problems.values()):
            seen = {snapshot.name for snapshot in looked_at}
            unseen = {snapshot.name for snapshot in usable} - seen if level == CONTENTS else ()
            check_contents(usable, part if level == CONTENTS else NONE, report, unseen)
        for snapshot in snapshots:
            if snapshot.name in report.snapshots and not still_there(series, snapshot):
                report.drop(snapshot.name)
        snapshots = [snapshot for snapshot in snapshots if snapshot.name in report.snapshots]
        before = {snapshot.name: snapshot.checked() for snapshot in snapshots}
        read, walked = ({snapshot.name for snapshot in those} for those in (usable, looked_at))
        after = {
            name: _remembered(report, name, found, level, part if name in read else NONE, name in walked, now)
            for name, found in before.items()
        }
        _tell_known(series, report, before, after, now)
        if record:
            _remember(series, snapshots, after, turn, report)
    return report, part


def _opened(series: Series, only: list[str] | None, report: Report) -> list[SnapshotFolder]:
    there = series.named() + series.named(names.ASIDE)
    unknown = sorted(set(only or ()) - set(there))
    if unknown:
        raise Refused(f"{series.path} has no snapshot {', '.join(unknown)}: list shows those that there are")
    opened = []
    for name in there:
        if only is None or name in only:
            try:
                opened.append(series.snapshot(name))
            except FileNotFoundError:
                continue  # pruned at this moment
            except OSError as error:
                report.add(STRUCTURE, name, None, f"it is no folder that can be opened: {error.strerror}")
    return opened


def _is_looked_at(name: str, newest: int | None, part: Subset) -> bool:
    """Return whether a check of a part covers all names of a snapshot: the newest one, and the others in turn."""
    final = names.once_accepted(name)
    return (newest is not None and final == names.name_of(newest)) or part.has(final.encode())


def _unless_gone(series: Series, snapshot: SnapshotFolder, report: Report) -> None:
    """Check the files of a snapshot, and ignore it if it was removed meanwhile."""
    try:
        check_files(snapshot, report)
    except FileNotFoundError:
        if still_there(series, snapshot):
            raise
    if not still_there(series, snapshot):
        report.drop(snapshot.name)


def _last_turn(series: Series) -> Turn | None:
    try:
        return read_json(series.fd, names.CHECKS, parse_turn)
    except (OSError, ValueError):
        return None


def _remember(
    series: Series, snapshots: list[SnapshotFolder], after: Mapping[str, CheckRecord], turn: Turn | None, report: Report
) -> None:
    try:
        with series.lock("check"):
            for snapshot in snapshots:
                write_json(snapshot.fd, names.CHECKED, after[snapshot.name].dump())
            if turn:
                write_json(series.fd, names.CHECKS, turn.dump())
    except (Refused, OSError) as error:
        report.warnings.append(
            f"what was checked could not be written down, so the next run reads the same subset: {error}"
        )


def _remembered(
    report: Report, name: str, before: CheckRecord, level: str, part: Subset, was_walked: bool, now: int
) -> CheckRecord:
    """Return what is known of a snapshot after this check, of ``part`` of its contents."""
    problems = report.of(name)
    found = dict.fromkeys(problem.finding for problem in problems)
    found.update(dict.fromkeys(one for one in before.findings if not _looked_for(one, level, part, was_walked)))
    sizes = itertools.accumulate(len(one.path) for one in found)
    findings = tuple(one for one, size in zip(found, sizes) if size <= _REMEMBERED)
    too_many = name in report.unlisted or len(findings) < len(found)
    is_all = was_walked and level == CONTENTS and len(part.parts) == part.of
    new = before._replace(
        checked=now,
        level=level,
        findings=findings,
        too_many=too_many or (before.too_many and not is_all),
    )
    if level != CONTENTS:
        return new
    times = new.shares.times if new.shares and new.shares.of == part.of else {}
    times = {key: value for key, value in times.items() if not problems or key not in part.parts}
    if not problems:
        times.update(dict.fromkeys(part.parts, now))
        if len(times) == part.of:
            new = new._replace(verified=min(times.values()))
    return new._replace(shares=ContentCheckTimes(part.of, times))


def _looked_for(finding: Finding, level: str, part: Subset, was_walked: bool) -> bool:
    """Return whether this check would have found it again. ``part``: of the contents that were read."""
    if finding.kind == STRUCTURE:
        return True
    if finding.kind in _CONTENTS_KINDS:
        return level == CONTENTS and part.has(unescape(finding.path))
    return was_walked


def _tell_known(
    series: Series, report: Report, before: Mapping[str, CheckRecord], after: Mapping[str, CheckRecord], now: int
) -> None:
    """Mark the problems that an earlier check found, and that the newest snapshot does not have.

    Of those that this check did not look for, the ones of the newest snapshot are problems, and the others are told.
    """
    at = names.latest_of(now, series.times())
    newest = "" if at is None else names.name_of(at)
    met = {problem.finding.path for problem in report.of(newest)}
    for finding in after[newest].findings if newest in after else ():
        if finding.path not in met:
            met.add(finding.path)
            report.add(
                finding.kind, newest, unescape(finding.path), "an earlier check found that, and this one did not look"
            )
    for problem in report.problems.values():
        problem.known = newest not in problem.snapshots and all(
            name in before and _was_told(problem.finding, before[name]) for name in problem.snapshots
        )
    known: dict[str, list[str]] = {}
    for name, checked in after.items():
        paths = {one.path: None for one in checked.findings if name != newest and _was_told(one, before[name])}
        for path in paths:
            known.setdefault(path, []).append(name)
    if known:
        report.warnings.append(_describe_known(known, newest))


def _was_told(finding: Finding, before: CheckRecord) -> bool:
    """Return whether an earlier check found it, or another problem of the path that put its contents in doubt."""
    return before.too_many or any(
        finding == one or (finding.path and finding.path == one.path and one.in_doubt) for one in before.findings
    )


def _describe_known(known: Mapping[str, list[str]], newest: str) -> str:
    """Describe the damage that older snapshots have for good, by path."""
    texts = [f"{repr(path) if path else 'itself'} in {', '.join(known[path])}" for path in sorted(known)[:_TOLD]]
    more = f"; and {len(known) - _TOLD} more" if len(known) > _TOLD else ""
    return (
        f"{KNOWN_DAMAGE}, which {newest or 'the newest one'} does not have: {'; '.join(texts)}{more}. "
        "Restore these paths from another snapshot. The damage goes when the policy removes those snapshots"
    )
