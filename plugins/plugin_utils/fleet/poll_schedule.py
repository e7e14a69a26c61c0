# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the hosts are asked again how far their jobs are, and which host is asked about a transfer. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

SHARE = 0.05  # of a processor of the control node, at most
SOONEST, LATEST = 1.0, 300.0  # seconds between two looks at a host
GROWTH = 1.5  # of the interval from one look to the next
CREDIT = 5.0  # processor seconds that looks may use at once after a time without any
AGAIN, SELDOM = 5.0, 60.0  # seconds after which a host that did not answer is asked again: at first, and at last
_NEAR = 0.5  # of the time that a transfer is thought to need still, after which its host is asked again
_FIRST_COST = 0.1  # processor seconds of a look, until it is known
_NEWER = 0.2  # weight of the last look's cost


def next_interval(before: float, ended: bool, fair: float = 0.0, left: float | None = None) -> float:
    """Return the seconds until a host is to be asked again, if the share of looks allows it.

    ``before`` is the interval so far (0 at first), ``ended`` says whether a transfer had ended, and ``fair`` is the
    interval at which all hosts together take the share. Without an end it grows, since what takes long may take longer.
    ``left`` is in how many seconds a transfer should end, None if nobody knows: it is short before that, so that the
    next job need not wait.
    """
    wanted = SOONEST if ended or not before else min(before * GROWTH, LATEST)
    wanted = max(wanted, fair)
    return wanted if left is None else min(wanted, max(SOONEST, left * _NEAR))


class PollSchedule:
    """When each host is asked. Times are seconds of one clock.

    Looks together take no more of a processor than their share. Where that does not allow for all that are due, those
    come first that have waited for the most of their intervals, so that all of them grow alike.
    """

    def __init__(self) -> None:
        self._asked: dict[str, float] = {}  # when a host answered last, or became one that is asked
        self._interval: dict[str, float] = {}
        self._urgent: set[str] = set()  # hosts that are asked whatever it costs
        self._silent: dict[str, float] = {}  # hosts that did not answer, and their interval since
        self._charged: dict[str, float] = {}  # processor seconds that a look under way is thought to cost
        self._cost = _FIRST_COST
        self._free = float("-inf")  # until then earlier looks have used the share

    def keep(self, hosts: Collection[str], now: float) -> None:
        """Have these hosts asked from now on, and no others."""
        self._asked = {host: self._asked.get(host, now) for host in hosts}
        self._interval = {host: self._interval.get(host, SOONEST) for host in hosts}
        self._urgent.intersection_update(hosts)

    def hasten(self, host: str, urgent: bool = False) -> None:
        """Have a host asked soon: what has begun there may be short. ``urgent``: a job waits for its answer."""
        if host in self._asked:
            self._interval[host] = SOONEST
            if urgent:
                self._urgent.add(host)

    def next(self, busy: Collection[str]) -> float | None:
        """Return when a host will be due, None if none is asked; ``busy`` hosts are being asked now."""
        idle = (host for host in self._asked if host not in busy)
        return min(
            (self._due(host) if host in self._urgent else max(self._free, self._due(host)) for host in idle),
            default=None,
        )

    def take_due(self, now: float, busy: Collection[str]) -> list[str]:
        """Return the hosts to ask now, and count what that costs."""
        due = [host for host in self._asked if host not in busy and self._due(host) <= now]
        urgent = [host for host in due if host in self._urgent]
        others = [host for host in due if host not in self._urgent]
        others.sort(key=lambda host: self._lateness(host, now), reverse=True)
        return [*urgent, *self._affordable(others, now)]

    def _affordable(self, hosts: Iterable[str], now: float) -> Iterable[str]:
        for host in hosts:
            if self._free > now:
                return
            self._free = max(self._free, now - CREDIT / SHARE) + self._cost / SHARE
            self._charged[host] = self._cost
            yield host

    def answered(self, host: str, now: float, spent: float, ended: bool, left: float | None = None) -> None:
        """Say when a host is asked again; ``spent`` are the processor seconds of the look. Else see next_interval."""
        self._silent.pop(host, None)
        if host in self._charged:
            self._free += (spent - self._charged.pop(host)) / SHARE
        self._cost += _NEWER * (spent - self._cost)
        fair = spent * len(self._asked) / SHARE
        self._again(host, now, next_interval(self._interval.get(host, 0.0), ended, fair, left))

    def failed(self, host: str, now: float) -> None:
        """Have a host that did not answer asked again in a while, which grows."""
        self._charged.pop(host, None)
        self._silent[host] = min(SELDOM, self._silent.get(host, AGAIN / GROWTH) * GROWTH)
        self._again(host, now, self._silent[host])

    def _again(self, host: str, now: float, interval: float) -> None:
        self._urgent.discard(host)
        if host in self._asked:
            self._asked[host], self._interval[host] = now, interval

    def _due(self, host: str) -> float:
        return self._asked[host] + self._interval[host]

    def _lateness(self, host: str, now: float) -> float:
        """Return how many of its intervals a host has waited."""
        return (now - self._asked[host]) / self._interval[host]


def hosts_to_ask(transfers: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Return which host is asked about which transfers, so that as few hosts as possible are asked.

    ``transfers`` has the hosts that know each one, in the order of preference. One look asks each host once.
    """
    count = Counter(host for hosts in transfers.values() for host in set(hosts))
    asked: dict[str, list[str]] = {}
    for name, hosts in transfers.items():
        asked.setdefault(max(hosts, key=lambda host: count[host]), []).append(name)
    return asked
