# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A check from the choice of snapshots to what is remembered of it. Private to the collection."""

from __future__ import annotations

import contextlib

from .._model.paths import escape
from . import names
from .atomic_io import read_json, write_json
from .check import CONTENTS, FILES, STRUCTURE, Report, check_files, check_names, check_structure, still_there
from .check_contents import check_contents
from .errors import Refused
from .facts import Checked, Shares
from .repository import Series, Snapshot
from .subset import ALL, NONE, Subset, Turn, next_subset, parse_turn

_REMEMBERED_PATHS = 20


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
        for snapshot in usable if level != STRUCTURE else ():
            _unless_gone(series, snapshot, report)
        usable = [snapshot for snapshot in usable if snapshot.name in report.snapshots]
        if level == CONTENTS or any(problem.path is not None for problem in report.problems.values()):
            check_contents(usable, part if level == CONTENTS else NONE, report)
        for snapshot in snapshots:
            if snapshot.name in report.snapshots and not still_there(series, snapshot):
                report.drop(snapshot.name)
        if record:
            _remember(
                series,
                [snapshot for snapshot in snapshots if snapshot.name in report.snapshots],
                level,
                part,
                turn,
                now,
                report,
            )
    return report, part


def _opened(series: Series, only: list[str] | None, report: Report) -> list[Snapshot]:
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


def _unless_gone(series: Series, snapshot: Snapshot, report: Report) -> None:
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
    series: Series, snapshots: list[Snapshot], level: str, part: Subset, turn: Turn | None, now: int, report: Report
) -> None:
    try:
        with series.lock("check"):
            for snapshot in snapshots:
                write_json(snapshot.fd, names.CHECKED, _remembered(snapshot, level, part, now, report).dump())
            if turn:
                write_json(series.fd, names.CHECKS, turn.dump())
    except (Refused, OSError) as error:
        report.warnings.append(
            f"what was checked could not be written down, so the next run reads the same subset: {error}"
        )


def _remembered(snapshot: Snapshot, level: str, part: Subset, now: int, report: Report) -> Checked:
    """Return what is known of a snapshot's state after this check."""
    problems = report.of(snapshot.name)
    new = snapshot.checked()._replace(checked=now, level=level)
    if level in (FILES, CONTENTS) or problems:
        found = [escape(problem.path) if problem.path is not None else "" for problem in problems]
        new = new._replace(damaged=found[:_REMEMBERED_PATHS])
    if level != CONTENTS:
        return new
    times = new.shares.times if new.shares and new.shares.of == part.of else {}
    times = {key: value for key, value in times.items() if not problems or key not in part.parts}
    if not problems:
        times.update(dict.fromkeys(part.parts, now))
        if len(times) == part.of:
            new = new._replace(verified=min(times.values()))
    return new._replace(shares=Shares(part.of, times))
