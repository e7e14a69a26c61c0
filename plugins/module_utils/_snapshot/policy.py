# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Retention: select the snapshots that a policy keeps, and the rules that keep them. Private to the collection.

Pure. The rules look at the times of complete snapshots alone, and every rule looks at all of them, whatever the other
rules keep:

* ``last: N`` keeps the N newest.
* ``hourly``, ``daily``, ``weekly``, ``monthly``, ``yearly: N``: of the N most recent hours (days, ISO weeks from
  Monday, months, years) in which there is a snapshot at all, the newest of each. A period without a snapshot does not
  count, so a job that rested loses nothing. Periods are those of the calendar of a time zone. An hour that a clock
  change repeats counts as two, because its offset from UTC is another.
* ``within``: everything that is not older than that, counted back **from the newest snapshot**, not from now. So a job
  that stopped keeps what it has.

A snapshot is kept if any rule keeps it. Two more rules are always there: ``latest`` keeps the newest snapshot, so the
last complete one never goes, and ``future`` keeps snapshots that are later than now. Those come from a clock that was
wrong, so nothing can be concluded from them: for all other rules they are not there.

Pruning is steady: what a policy keeps, it keeps when it is applied to the rest again, and pruning after every backup
ends with the same snapshots as pruning once at the end.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from .._core.counted import counted
from .errors import Refused
from .time_zones import Calendar, utc

_HOUR = 3600
_CLOCKS_WARN, _CLOCKS_REFUSE = _HOUR, 24 * _HOUR  # seconds that two clocks are apart
_UNITS = {"h": _HOUR, "d": 24 * _HOUR, "w": 7 * 24 * _HOUR}  # seconds
_SPAN = re.compile(r"(\d+)([hdw])")

_PERIODS: dict[str, Callable[[datetime], Any]] = {
    "hourly": lambda at: (at.date(), at.hour, at.utcoffset()),
    "daily": lambda at: at.date(),
    "weekly": lambda at: tuple(at.isocalendar())[:2],
    "monthly": lambda at: (at.year, at.month),
    "yearly": lambda at: at.year,
}
COUNTS = ("last", *_PERIODS)
_DAY = 24 * _HOUR
_LENGTHS = {"hourly": _HOUR, "daily": _DAY, "weekly": 7 * _DAY, "monthly": 31 * _DAY, "yearly": 366 * _DAY}  # seconds


class Policy(NamedTuple):
    """How many snapshots each rule keeps."""

    last: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0
    within: int = 0  # seconds


def parse(keep: Mapping[str, Any]) -> Policy:
    """Make a policy of an option: the counts as numbers, ``within`` as a text such as ``36h``, ``14d`` or ``1w2d``.

    Raises Refused for an empty policy, a negative count and a span that cannot be read.
    """
    unknown = sorted(set(keep) - set(Policy._fields))
    if unknown:
        raise Refused(f"the policy has no rule {', '.join(unknown)}; the rules are {', '.join(Policy._fields)}")
    counts = {rule: keep.get(rule) or 0 for rule in COUNTS}
    for rule, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise Refused(f"the policy's rule {rule} is {count}: give the number of snapshots that it keeps")
    policy = Policy(within=span(keep.get("within") or "", "the policy's rule within"), **counts)
    if not any(policy):
        raise Refused(
            "the policy is empty, so it would remove every snapshot but the last. Say what to keep, for instance "
            "keep: {daily: 7, weekly: 5, monthly: 12}"
        )
    return policy


class RuleStanding(NamedTuple):
    """The snapshots that a rule of a policy wants, and those that it has."""

    rule: str
    wanted: int  # snapshots, periods with a snapshot, or seconds
    there: int
    is_short: bool  # less than wanted, although there are snapshots from before that time


def compare(times: Iterable[int], policy: Policy, now: float, calendar: Calendar = utc) -> list[RuleStanding]:
    """Return for each rule of a policy what it wants and what is there, counted back from ``now``.

    Unlike ``decide``, a period without a snapshot counts as missing: of ``daily: 7``, with two nights without a backup
    in the last week, five are there. ``times`` are those of all complete snapshots and ``now``, in seconds since 1970.
    """
    present = sorted(at for at in times if at <= now)
    found = []
    for rule in COUNTS:
        wanted = getattr(policy, rule)
        if not wanted:
            continue
        if rule == "last":
            found.append(RuleStanding(rule, wanted, min(wanted, len(present)), False))
            continue
        begin = now - wanted * _LENGTHS[rule]
        periods = {_PERIODS[rule](calendar(at)) for at in present if at > begin}
        there = min(wanted, len(periods))
        found.append(RuleStanding(rule, wanted, there, there < wanted and bool(present) and present[0] <= begin))
    if policy.within:
        there = int(min(policy.within, now - present[0])) if present else 0
        found.append(RuleStanding("within", policy.within, there, False))
    return found


def compare_clocks(here: int, control_node: int) -> str:
    """Return a warning if the repository's clock is more than an hour from the control node's; empty if it is not.

    Both are in seconds since 1970. Raises Refused from a day on: one of the two is wrong, and nobody knows which.
    """
    apart = abs(here - control_node)
    if apart <= _CLOCKS_WARN:
        return ""
    words = "ahead of" if here > control_node else "behind"
    days, hours = apart // (24 * _HOUR), apart // _HOUR
    amount = counted(days, "day", "days") if days else counted(hours, "hour", "hours")
    said = f"the clock of the repository is {amount} {words} that of the control node"
    if apart <= _CLOCKS_REFUSE:
        return f"{said}: set the one that is wrong (timedatectl). From a day on nothing is pruned"
    raise Refused(
        f"{said}. With a wrong date a policy keeps the wrong snapshots, so nothing was pruned. Set the clock that is "
        "wrong (timedatectl), and run this again. Snapshots that got a date in the future stay, and count as none"
    )


def span(text: str, what: str) -> int:
    """Return the seconds of a span of time such as ``36h``, ``14d`` or ``1w2d``, 0 for an empty string.

    Raises Refused, with ``what`` it is for, where it cannot be read.
    """
    parts = _SPAN.findall(text) if text.isascii() else []
    if "".join(number + unit for number, unit in parts) != text:
        raise Refused(f"{what} is '{text}', which is no span of time: write hours, days and weeks as 36h, 14d or 1w2d")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def describe(policy: Policy) -> str:
    """Return a policy in words: ``last 5, daily 7, within 1209600 s``."""
    counts = [f"{rule} {count}" for rule in COUNTS if (count := getattr(policy, rule))]
    return ", ".join([*counts, *([f"within {policy.within} s"] if policy.within else [])])


def decide(times: Iterable[int], policy: Policy, now: float, calendar: Calendar = utc) -> dict[int, list[str]]:
    """Name for each snapshot the rules that keep it, in the order of the rules; none means that it goes.

    ``times`` are those of all complete snapshots and ``now``, in seconds since 1970.
    """
    kept: dict[int, list[str]] = {at: [] for at in sorted(set(times), reverse=True)}
    present = [at for at in kept if at <= now]  # the newest first
    for at in kept:
        if at > now:
            kept[at].append("future")
    if not present:
        return kept
    kept[present[0]].append("latest")
    for at in present[: policy.last]:
        kept[at].append("last")
    for rule, period_of in _PERIODS.items():
        count = getattr(policy, rule)
        seen: set[object] = set()
        for at in present if count else ():
            period = period_of(calendar(at))
            if period not in seen:
                if len(seen) == count:
                    break
                seen.add(period)
                kept[at].append(rule)
    for at in present if policy.within else ():
        if at >= present[0] - policy.within:
            kept[at].append("within")
    return kept
