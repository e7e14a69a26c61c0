# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide about what is not a complete snapshot: take one that was set aside, or drop it. Private to the collection."""

from __future__ import annotations

from typing import Callable

from . import names
from .atomic_io import write_json
from .begin import unfinished_writer
from .errors import Refused
from .history import ACCEPTED, DISCARDED, event_of, find_missing, note
from .hold import ending_clock, refuse_held
from .prune import remove_tree
from .repository import Series


def accept(series: Series, name: str, now: int, *, control_time: int | None = None, check: bool = False) -> bool:
    """Make a snapshot that was set aside a complete one; says whether that was to be done. The lock is the caller's.

    One that is protected stays as it is.
    """
    final = _time(name)
    if not series.has(names.ASIDE_PREFIX + final):
        if series.has(final):
            return series.settle(now, check)
        raise _missing(series, name)
    if series.has(final):
        raise Refused(f"{series.path} has a complete snapshot {final} already: discard one of the two")
    refuse_held(series, names.ASIDE_PREFIX + final, ending_clock(series, now, control_time), "accept")
    if not check:
        with series.snapshot(names.ASIDE_PREFIX + final) as snapshot:
            facts = snapshot.facts()
            series.step("facts")
            accepted = facts._replace(aside="", past=facts.past[:1])  # what was before it says nothing any more
            write_json(snapshot.fd, names.FACTS, accepted.dump())
        series.step("rename")
        series.rename(names.ASIDE_PREFIX + final, final)
        note(series, event_of(series, ACCEPTED, final, now))
        series.step("settle")
        series.settle(now)
    return True


def discard(
    series: Series,
    name: str,
    writer: Callable[[str], str | None] = lambda path: None,
    *,
    now: int = 0,
    control_time: int | None = None,
    check: bool = False,
) -> bool:
    """Remove a snapshot that was set aside, or the unfinished one (``unfinished``); says whether there was one.

    A complete snapshot is not removed this way, but one that is gone may be: then the history says that it should be.
    ``writer`` says who writes to a path. The lock is the caller's.
    """
    if name in ("unfinished", names.UNFINISHED):
        found = names.UNFINISHED
        holder = unfinished_writer(series, writer)
        if holder is not None:
            raise Refused(
                f"{holder} is writing to the unfinished snapshot at this moment: wait for it to end, or end it first"
            )
    else:
        found = names.ASIDE_PREFIX + _time(name)
        if any(name == one.name for one in find_missing(series, now)):
            if not check:
                note(series, event_of(series, DISCARDED, name, now, "it was gone already"))
            return True
        if not name.startswith(names.ASIDE_PREFIX):
            raise Refused(
                f"'{name}' would be a complete snapshot, and those go by prune alone. Discard takes unfinished or "
                "aside-…"
            )
    if not series.has(found):
        return False
    refuse_held(series, found, ending_clock(series, now, control_time), "discard")
    if not check:
        at = names.time_of(names.once_accepted(found)) or 0  # the unfinished one has none
        removing = names.name_of(_free(series, at), names.REMOVING)
        series.step("set apart")
        series.rename(found, removing)
        note(series, event_of(series, DISCARDED, found, now))
        series.step("remove")
        remove_tree(series, removing)
    return True


def _free(series: Series, at: int) -> int:
    """Return a time under which nothing is being removed yet."""
    return names.next_time(at, series.times(names.REMOVING), None)


def _time(name: str) -> str:
    """Return the time in the name of a snapshot, set aside or not."""
    final = names.once_accepted(name)
    if names.time_of(final) is None:
        raise Refused(
            f"'{name}' is no name of a snapshot: those look like 2026-11-21T173009Z or aside-2026-11-21T173009Z"
        )
    return final


def _missing(series: Series, name: str) -> Refused:
    return Refused(f"there is no snapshot {name} in {series.path}: list shows those that there are")
