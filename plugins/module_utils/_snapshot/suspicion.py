# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tell whether a source lost or changed suspiciously much, by the job's own past. Private to the collection.

Pure. What makes a source lose most of its files is seldom what somebody wanted: a file system that is not mounted, a
wrong filter, somebody else's program. Nor is it usual that most files get other contents in one night: a program has
encrypted them in place.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

from .facts import Figures, Past

REMEMBERED = 7  # snapshots before
_LEAST = 3  # of them, to know what is usual
_FACTOR = 2  # times as much as usual is still no reason


class ChangeLimits(NamedTuple):
    """How many per cent may be gone, or have other contents, until a snapshot is set aside. 100 allows everything."""

    shrink: float = 100
    change: float = 100


ALL_ALLOWED = ChangeLimits()


def suspicion(figures: Figures, past: Sequence[Past], limits: ChangeLimits) -> str:
    """Return what is suspicious, or an empty string. ``past`` are the snapshots before, the newest first."""
    return (
        _lost(figures.gone or 0, figures.before or 0, limits.shrink)
        or _shrunk(figures.files, past, limits.shrink)
        or _changed(figures, past, limits.change)
    )


def remember(name: str, figures: Figures, past: Sequence[Past]) -> tuple[Past, ...]:
    """Return the past of the next snapshot: this one, with the name that it has once it is complete, and ``past``."""
    return (Past(name, figures.files or 0, figures.changed, figures.files_before), *past)[:REMEMBERED]


def _lost(gone: int, before: int, limit: float) -> str:
    """Judge the names that are missing; ``before`` are those of the snapshot before that are no directories."""
    if not before or gone * 100 <= limit * before:
        return ""
    return (
        f"{_per_cent(gone, before)} of the files of the snapshot before are gone ({gone} of {before}), and the limit "
        f"(shrink_limit) is {limit:g} %"
    )


def _shrunk(files: int | None, past: Sequence[Past], limit: float) -> str:
    """Judge what is left of the most files that there were: a little less each day becomes much, too.

    A job whose files come and go had as few before.
    """
    most = max(past, key=lambda one: one.files, default=None)
    if files is None or most is None or files * 100 >= (100 - limit) * most.files:
        return ""
    if files >= min(one.files for one in past):
        return ""
    gone = most.files - files
    return (
        f"there are {files} files, and there were {most.files} in {most.name}: {_per_cent(gone, most.files)} less "
        f"within {len(past)} snapshots, and the limit (shrink_limit) is {limit:g} %"
    )


def _changed(figures: Figures, past: Sequence[Past], limit: float) -> str:
    """Judge the files that have other contents, by what is usual for the job: as much as that changed twice before.

    A single time says nothing, or what somebody has accepted would allow the same to what comes next.
    """
    changed, before = figures.changed or 0, figures.files_before or 0
    shares = [one.changed * 100 / one.files_before for one in past if one.changed is not None and one.files_before]
    usual = sorted(shares)[-2] if len(shares) >= _LEAST else 100
    if not before or changed * 100 <= max(limit, _FACTOR * usual) * before:
        return ""
    return (
        f"{_per_cent(changed, before)} of the files have other contents than in the snapshot before ({changed} of "
        f"{before}), and the limit (change_limit) is {limit:g} %; up to {usual:.1f} % are usual for this job"
    )


def _per_cent(part: int, whole: int) -> str:
    return f"{part * 100 / whole:.1f} %"
