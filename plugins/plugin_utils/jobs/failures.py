# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The failures of a run: shown together at its end, and kept short for the statistics of Ansible. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ..common.host_text import one_line

# What became of a job that has not failed: it is late, or waits for a person, or for another run.
IS_STALE, IS_ASIDE, IS_UNCOPIED, IS_BUSY = UNFAILED = (
    "is stale",
    "was set aside",
    "has a copy that needs attention",
    "is busy",
)
_MOST_LINES = 400  # of all failures together: a terminal has to show them, and the report has all
_MOST_NAMES = 10  # in one sentence
_MOST_KEPT = 50  # failures in the statistics, which an automation controller keeps in its database
_LONGEST = 500  # characters of a text there


class ReportedFailure(NamedTuple):
    """What failed, why, and what to do."""

    name: str
    what: str  # what became of it: stopped in phase seed, failed, is stale
    reason: str
    next: str = ""


class KeptFailure(TypedDict):
    """A failure in the statistics."""

    name: str
    what: str
    reason: str
    next: str


def read_failures(given: Sequence[Mapping[str, Any]]) -> list[ReportedFailure]:
    """Return failures that a task was given as dictionaries; of two with one name the last."""
    found = {
        str(one["name"]): ReportedFailure(*(str(one.get(key) or "") for key in ("name", "what", "reason", "next")))
        for one in given
    }
    return list(found.values())


def render_failures(failures: Sequence[ReportedFailure]) -> list[str]:
    """Return the lines about all failures, each with its reason and what to do."""
    lines: list[str] = []
    for number, one in enumerate(failures):
        reason = one.reason.strip().splitlines() or ["no reason is known"]
        shown = [f"{one.name} {one.what}: {reason[0]}", *reason[1:]]
        advice = one.next.strip().splitlines()
        shown += [f"  {'' if number else 'next: '}{line}" for number, line in enumerate(advice)]
        if lines and len(lines) + len(shown) > _MOST_LINES:
            return [*lines, f"... and {len(failures) - number} more, which are in the report"]
        lines += shown
    return lines


def sum_up(failures: Sequence[ReportedFailure], total: int, report: str) -> str:
    """Return one sentence on all failures. ``report`` is the path of the report, empty if there is none."""
    names = [one.name for one in failures]
    left = len(names) - _MOST_NAMES
    named = ", ".join(names[:_MOST_NAMES]) + (f" and {left} more" if left > 0 else "")
    where = f"listed above and in {report}" if report else "listed above"
    have_failed = any(one.what not in UNFAILED for one in failures)
    state = "failed" if have_failed else "needs attention" if len(names) == 1 else "need attention"
    return f"{len(names)} of {counted(total, 'job', 'jobs')} {state}: {named}. Why, and what to do, is {where}"


def keep_failures(failures: Sequence[ReportedFailure]) -> list[KeptFailure]:
    """Return what the statistics of the run keep of failures: the first ones, with texts of bounded length."""
    return [
        {
            "name": one.name,
            "what": one.what,
            "reason": one_line(one.reason.strip().replace("\n", " "))[:_LONGEST],
            "next": one_line(one.next.strip().replace("\n", " "))[:_LONGEST],
        }
        for one in failures[:_MOST_KEPT]
    ]
