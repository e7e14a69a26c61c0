# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Account of the time that one end of a transfer spent, as its host says it. Untrusted input; pure.

Numbers have bounds, and words are those that are known here; the rest counts as not said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Tuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core import time_accounting
from ansible_collections.longhaul.fleet.plugins.module_utils._core.disk_usage import POOL_STATES
from ansible_collections.longhaul.fleet.plugins.module_utils._core.time_accounting import QUEUED

from .diagnosis import percent_text, rate_text
from .tcp_limits import LineConditions, number_said, parse_met

POOL_IS_FULL = 0.8  # of a ZFS pool: beyond that it looks long for free space

Seconds = Mapping[str, Tuple[float, float]]  # by occupation: how long, and how much of that with the processor


@dataclass(frozen=True)
class DiskUse:
    """What the kernel counted of the devices below a root, others' use included, and the state of its ZFS pool."""

    seconds: float = 0.0  # that were counted; 0: the kernel counts nothing of this file system
    busy: float = 0.0  # seconds in which the busiest device had something to do
    read: float = 0.0  # bytes
    written: float = 0.0
    pool_state: str = ""  # as `zpool list` says it
    pool_full: float = 0.0  # share

    @property
    def is_counted(self) -> bool:
        """Whether the kernel counted anything."""
        return self.seconds > 0

    @property
    def share(self) -> float:
        """Return the share of the time in which the busiest device was busy."""
        return min(1.0, self.busy / self.seconds) if self.seconds else 0.0

    @property
    def pool_trouble(self) -> str:
        """Return a clause on a pool that is degraded or nearly full; empty if nothing is wrong with it."""
        words = [f"is {self.pool_state}"] if self.is_degraded else []
        words += [f"is {percent_text(self.pool_full)} full"] if self.pool_full > POOL_IS_FULL else []
        return f"its ZFS pool {' and '.join(words)}" if words else ""

    @property
    def is_degraded(self) -> bool:
        """Whether the pool has lost a disk or more."""
        return self.pool_state not in ("", "ONLINE")

    def moved_text(self, reads: bool) -> str:
        """Return ``(18.0 MiB/s written)``."""
        count, what = (self.read, "read") if reads else (self.written, "written")
        return f"({rate_text(count / max(self.seconds, 1e-9))} {what})"


@dataclass(frozen=True)
class Account:
    """Time that one end spent, as far as its answer can be read."""

    wall: float = 0.0
    processor: float = 0.0
    roles: Mapping[str, Seconds] = field(default_factory=dict)
    met: LineConditions | None = None  # what its connections met, as far as it sends
    disk: DiskUse = DiskUse()
    encryption: float = 0.0  # seconds with the processor of the busiest ssh, where a program moves the contents


def parse_account(said: object) -> Account:
    """Return what one end said (time_accounting.TimeAccount)."""
    said = said if isinstance(said, Mapping) else {}
    roles = said.get("roles")
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for role, seconds in roles.items() if isinstance(roles, Mapping) else ():
        if isinstance(seconds, Mapping):
            found[role] = {
                name: (number_said(pair[0]), number_said(pair[1]))
                for name, pair in seconds.items()
                if isinstance(pair, (list, tuple)) and len(pair) == 2
            }
    return Account(
        wall=number_said(said.get("wall")),
        processor=number_said(said.get("processor")),
        roles=found,
        met=parse_met(said.get("line")),
        disk=parse_disk(said.get("disk")),
        encryption=number_said(said.get("encryption")),
    )


def parse_disk(said: object) -> DiskUse:
    """Return what a host said of its disk (disk_usage.DiskUsage)."""
    if not isinstance(said, Mapping):
        return DiskUse()
    seconds, busy, read, written = (number_said(said.get(name)) for name in ("seconds", "busy", "read", "written"))
    state = said.get("pool_state")
    return DiskUse(
        seconds,
        min(busy, seconds),
        read,
        written,
        pool_state=state if isinstance(state, str) and state in POOL_STATES else "",
        pool_full=min(1.0, number_said(said.get("pool_full"))),
    )


def met_by(spent: Mapping[str, object]) -> LineConditions | None:
    """Return what the connections of the source met, by Outcome.spent; None if it said nothing."""
    return parse_account(spent.get("source")).met


def in_words(end: Account, side: str) -> dict[str, float]:
    """Return the seconds of one end by what they went into, added up over its threads."""
    found = {"wall": end.wall, "processor": end.processor}
    names = (
        {
            "reading": time_accounting.READ,
            "waiting_to_send": time_accounting.SEND,
            "throttled": time_accounting.THROTTLED,
        }
        if side == "source"
        else {
            "waiting_to_receive": time_accounting.RECEIVE,
            "writing": time_accounting.WRITE,
            "syncing": time_accounting.SYNC,
        }
    )
    if end.roles:
        for word, occupation in names.items():
            spent = [seconds[occupation] for seconds in end.roles.values() if occupation in seconds]
            found[word] = round(sum(max(0.0, wall - processor) for wall, processor in spent), 3)
        queued = [spent[QUEUED][0] for spent in end.roles.values() if QUEUED in spent]
        found.update({"waiting_for_a_processor": round(sum(queued), 3)} if queued else {})
    if end.disk.is_counted:
        found["disk_busy"] = round(end.disk.busy, 3)
    return found
