# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A check from the choice of snapshots to what is remembered of it. Private to the collection."""

from __future__ import annotations

import contextlib
from typing import Any

from .._model.paths import escape
from . import names
from .atomic_io import read_json, write_json
from .check import CONTENTS, FILES, STRUCTURE, Report, check_files, check_names, check_structure, still_there
from .check_contents import check_contents
from .errors import Refused
from .repository import Series, Snapshot
from .subset import ALL, NONE, Subset, next_subset

_REMEMBERED_PATHS = 20


def check(
    series: Series,
    level: str,
    now: int,
    share: tuple[int, int] = (1, 1),
    only: list[str] | None = None,
    *,
    record: bool = True,
) -> tuple[Report, Subset]:
    """Check the snapshots of a job, or those named in ``only``; gives what was found, and the share that was read.

    The lock must not be held: a check may take hours. With ``record`` it is remembered when what was checked, in each
    snapshot and for the turn of the shares. Raises Refused for a name that is no snapshot.
    """
    report = Report()
    turn: dict[str, int] = {}
    part = ALL
    if level == CONTENTS:
        part, turn = next_subset(*share, _last_turn(series))
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
    """Look at the files of a snapshot, and forget it if it was removed meanwhile."""
    try:
        check_files(snapshot, report)
    except FileNotFoundError:
        if still_there(series, snapshot):
            raise
    if not still_there(series, snapshot):
        report.drop(snapshot.name)


def _last_turn(series: Series) -> dict[str, Any]:
    try:
        return read_json(series.fd, names.CHECKS)
    except (OSError, ValueError):
        return {}


def _remember(
    series: Series, snapshots: list[Snapshot], level: str, part: Subset, turn: dict[str, int], now: int, report: Report
) -> None:
    try:
        with series.lock("check"):
            for snapshot in snapshots:
                write_json(snapshot.fd, names.CHECKED, _remembered(snapshot, level, part, now, report))
            if turn:
                write_json(series.fd, names.CHECKS, turn)
    except (Refused, OSError) as error:
        report.warnings.append(
            f"what was checked could not be written down, so the next run reads the same share: {error}"
        )


def _remembered(snapshot: Snapshot, level: str, part: Subset, now: int, report: Report) -> dict[str, Any]:
    """Give what is known of a snapshot's state after this check."""
    old = snapshot.checked()
    problems = report.of(snapshot.name)
    new: dict[str, Any] = {
        "checked": now,
        "level": level,
        "verified": old.get("verified"),
        "shares": old.get("shares", {}),
    }
    if level in (FILES, CONTENTS) or problems:
        new["damaged"] = [escape(problem.path) if problem.path is not None else "" for problem in problems][
            :_REMEMBERED_PATHS
        ]
    else:
        new["damaged"] = old.get("damaged", [])
    if level != CONTENTS:
        return new
    shares: dict[str, Any] = new["shares"] if new["shares"].get("of") == part.of else {"of": part.of, "times": {}}
    times = {key: value for key, value in shares["times"].items() if not problems or int(key) not in part.parts}
    if not problems:
        times.update({str(number): now for number in part.parts})
        if len(times) == part.of:
            new["verified"] = min(times.values())
    new["shares"] = {"of": part.of, "times": times}
    return new
