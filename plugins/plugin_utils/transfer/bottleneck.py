# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Name what a transfer waited for, from what both ends say that their time went into. Pure.

A transfer is a chain: read, encrypt, network, decrypt, write. What is behind the slowest link of it waits for data, and
what is before it waits until it may send. So the network is slow where both wait, an end is slow where it is at work
while the other one waits, and processor time tells whether it computes or waits for its disk. Where the kernel counts
how long a disk was busy, that is said of it; of a file system without a device, the time spent in calls is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core import time_accounting
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._core.time_accounting import QUEUED

from .account import Account, Seconds, in_words, parse_account
from .diagnosis import (
    BWLIMIT,
    CIPHER,
    CONTENTION,
    DEST_CPU,
    DEST_DISK,
    DISKS,
    FULL,
    HOSTS,
    NETWORK,
    NONE,
    PROCESSORS,
    SOURCE_CPU,
    SOURCE_DISK,
    SlowPart,
    capital,
    nothing_slow,
    of_time,
    percent_text,
    rate_text,
    slow_part,
)
from .tcp_limits import find_limit

_SHORTEST = 2.0  # seconds: what a shorter transfer waited for is mostly its beginning and its end
_STANDS_OUT = 0.25  # of the time
_BUSY = 0.8  # of a processor for each stream, or of the time of a disk: then it has no time left to wait
_CONTENDED_FROM = 1 / 3  # of the time with the processor: so long it waited for others that used it
_ENCRYPTS_FROM = 1 / 2  # of the processor time: so much went into encryption
_FULL = 0.7  # of the speed of an interface, of bwlimit, or of the time of a disk that a program uses


@dataclass(frozen=True)
class Line:
    """What is known of the way between the hosts, in bytes a second; 0: nothing."""

    interface: int = 0  # the slower one of the two
    limit: int = 0  # bwlimit


@dataclass(frozen=True)
class TransferFacts:
    """What a transfer was, as far as it decides how its time is read."""

    method: str
    streams: int = 1
    bytes_sent: int = 0
    encrypted: bool = False
    moved: bool = True  # contents or entries; a rerun that finds nothing to do and a prediction only look


@dataclass(frozen=True)
class Shares:
    """What the time of one end went into, as shares that add up to 1."""

    work: float = 0.0  # waiting for its own disk: reading at the source, writing at the destination
    processor: float = 0.0  # computing, or waiting for a processor
    queued: float = 0.0  # waiting for one; a part of processor
    other: float = 0.0  # waiting for what is beyond: until the network takes data, or brings some
    throttled: float = 0.0  # by bwlimit; a part of other
    encrypting: float = 0.0  # and sending, or receiving and decrypting; a part of processor


class Bottleneck(TypedDict):
    """What held a transfer back, as its result has it."""

    name: str
    cause: str  # of a network (see tcp_limits) or a processor that is slow, as far as the system tells; else empty
    sentence: str  # name, numbers and advice
    evidence: str
    advice: str
    source: dict[str, float]  # the seconds of each end, in words
    dest: dict[str, float]


@dataclass(frozen=True)
class _Ends:
    """Both accounts of a transfer, and what follows from them for all causes."""

    source: Account
    dest: Account
    facts: TransferFacts
    line: Line

    @property
    def wall(self) -> float:
        return max(self.source.wall, self.dest.wall)

    @property
    def rate(self) -> float:
        return self.facts.bytes_sent / max(self.wall, 1e-9)

    @property
    def is_throttled(self) -> bool:
        """Whether bwlimit holds the transfer back."""
        throttled = sum(one.get(time_accounting.THROTTLED, (0.0, 0.0))[0] for one in self.source.roles.values())
        is_waiting = throttled > self.source.wall * _STANDS_OUT
        return is_waiting or bool(self.line.limit and self.rate >= _FULL * self.line.limit)

    @property
    def sent(self) -> str:
        return f"({rate_text(self.rate)} sent)"

    def of(self, name: str) -> Account:
        """Return the account of the host that has a part."""
        return self.source if name in (SOURCE_DISK, SOURCE_CPU) else self.dest

    @property
    def busy_disks(self) -> dict[str, float]:
        """Shares of the time in which the disks were busy, as far as the kernel counts."""
        return {SOURCE_DISK: self.source.disk.share, DEST_DISK: self.dest.disk.share}


def find_bottleneck(spent: Mapping[str, object], facts: TransferFacts, line: Line) -> Bottleneck:
    """Return what held a transfer back, what says so, and what to do about it.

    ``spent`` is Outcome.spent, which came from hosts: what cannot be read there counts as nothing said.
    """
    ends = _Ends(parse_account(spent.get("source")), parse_account(spent.get("dest")), facts, line)
    if not facts.moved:
        evidence = "nothing was sent, so nothing held the transfer back"
        return _result(ends, nothing_slow(evidence), evidence)
    if ends.wall < _SHORTEST:
        evidence = f"the transfer took {ends.wall:.1f} seconds, which is too short to tell"
        return _result(ends, nothing_slow(evidence), evidence)
    found, evidence = _of_stream(ends) if facts.method == "stream" else _from_outside(ends)
    return _result(ends, found, "; ".join([evidence, *_of_disks(ends)]))


def _result(ends: _Ends, found: SlowPart, evidence: str) -> Bottleneck:
    return {
        "name": found.name,
        "cause": found.cause,
        "sentence": found.sentence,
        "evidence": evidence,
        "advice": capital(found.remedy) or "Nothing stands out, so there is nothing to change",
        "source": in_words(ends.source, "source"),
        "dest": in_words(ends.dest, "dest"),
    }


def decide(source: Shares, dest: Shares) -> tuple[str, float]:
    """Name the slowest link, and say for what share of the time it held the others up."""
    held_up = {
        SOURCE_DISK: min(source.work, dest.other),
        SOURCE_CPU: min(source.processor, dest.other),
        NETWORK: min(source.other, dest.other),
        DEST_CPU: min(dest.processor, source.other),
        DEST_DISK: min(dest.work, source.other),
    }
    name = max(held_up, key=lambda one: held_up[one])
    return (name, held_up[name]) if held_up[name] >= _STANDS_OUT else (NONE, held_up[name])


def _of_stream(ends: _Ends) -> tuple[SlowPart, str]:
    """Judge by the threads that had most to do: the connections' send large files, the leader sends small ones."""
    busy = {role: _total(ends.source, role) for role in _ROLES}
    role = max(_ROLES, key=lambda one: busy[one])
    beyond: tuple[str, ...] = (time_accounting.SEND, time_accounting.THROTTLED)
    if role == time_accounting.LEAD:  # the leader also waits for the destination to have done its part
        beyond = (*beyond, time_accounting.ANSWER)
    ours = _shares(ends.source, role, beyond)
    theirs = _shares(ends.dest, role, (time_accounting.RECEIVE, time_accounting.ANSWER))
    evidence = (
        f"the source spent {percent_text(ours.work)} of its time reading, {percent_text(ours.processor)} with the "
        f"processor and {percent_text(ours.other)} waiting to send; the destination spent "
        f"{percent_text(theirs.other)} waiting for data, {percent_text(theirs.processor)} with the processor and "
        f"{percent_text(theirs.work)} writing"
    )
    if role == time_accounting.LINK:
        evidence += f"; large files travelled over {counted(ends.facts.streams, 'connection', 'connections')}"
    name, share = decide(ours, theirs)
    if name == NONE:  # nobody waits for another: what has no time left is slowest
        name, share = _without_time_left({SOURCE_CPU: ours.processor, DEST_CPU: theirs.processor, **ends.busy_disks})
    if name == NONE:
        return nothing_slow(f"no part of the transfer held up the others for long {ends.sent}"), evidence
    if name == NETWORK:
        waited = f"both ends waited for the network for {of_time(share, ends.wall)} {ends.sent}"
        return _slow_network(ends, waited, evidence)
    shares = ours if HOSTS[name] == "source" else theirs
    if name in DISKS:
        return _slow_disk(ends, name, shares.work), evidence
    if shares.queued >= shares.processor * _CONTENDED_FROM:
        queued = f"for {percent_text(shares.queued)} of its time it waited for a processor that others used"
        waited = f"the {HOSTS[name]} waited for a processor that others used for {of_time(shares.queued, ends.wall)}"
        return slow_part(name, CONTENTION, f"{waited} {ends.sent}"), f"{evidence}; {queued}"
    if ends.facts.encrypted and shares.encrypting >= shares.processor * _ENCRYPTS_FROM:
        does = "encrypting and sending" if name == SOURCE_CPU else "receiving and decrypting"
        worked = f"the {HOSTS[name]}'s processor was {does} for {of_time(shares.encrypting, ends.wall)}"
        return slow_part(name, CIPHER, f"{worked} {ends.sent}"), evidence
    worked = f"the {HOSTS[name]}'s processor was at work for {of_time(shares.processor, ends.wall)}"
    return slow_part(name, "", f"{worked} {ends.sent}"), evidence


_ROLES = (time_accounting.LINK, time_accounting.LEAD)


def _total(end: Account, role: str) -> float:
    """Return the seconds that threads of a role were at work or held up by the network."""
    idle = (time_accounting.IDLE, time_accounting.ANSWER)
    return sum(wall for name, (wall, _processor) in _occupations(end, role).items() if name not in idle)


def _occupations(end: Account, role: str) -> Seconds:
    return {name: spent for name, spent in end.roles.get(role, {}).items() if name != QUEUED}


def _shares(end: Account, role: str, beyond: tuple[str, ...]) -> Shares:
    """Sort the seconds of a role; ``beyond`` are the occupations in which it waits for the peer or the network.

    Where a thread waited for a processor is not known, only for how long: mostly where it used one.
    """
    counted = {name: value for name, value in _occupations(end, role).items() if name != time_accounting.IDLE}
    total = sum(wall for wall, _processor in counted.values())
    if not total:
        return Shares()
    used = sum(processor for _wall, processor in counted.values())
    queued, _none = end.roles.get(role, {}).get(QUEUED, (0.0, 0.0))
    idle = {name: max(0.0, wall - processor) for name, (wall, processor) in counted.items()}
    queues = {name: min(idle[name], queued * spent[1] / used) if used else 0.0 for name, spent in counted.items()}
    waits = {name: idle[name] - queues[name] for name in counted}
    other = sum(wait for name, wait in waits.items() if name in beyond)
    return Shares(
        work=sum(wait for name, wait in waits.items() if name in (time_accounting.READ, time_accounting.WRITE)) / total,
        processor=(used + sum(queues.values())) / total,
        queued=sum(queues.values()) / total,
        other=other / total,
        throttled=waits.get(time_accounting.THROTTLED, 0.0) / total,
        encrypting=sum(counted[name][1] for name in _ENCRYPTS if name in counted) / total,
    )


_ENCRYPTS = (time_accounting.SEND, time_accounting.RECEIVE)  # occupations of a thread that has TLS


def _without_time_left(shares: Mapping[str, float]) -> tuple[str, float]:
    """Return the busiest part if it has no time left, and its share of the time."""
    name = max(shares, key=lambda one: shares[one])
    return (name, shares[name]) if shares[name] >= _BUSY else (NONE, shares[name])


def _from_outside(ends: _Ends) -> tuple[SlowPart, str]:
    """Judge a program by its processor time, where it is a child of the job, and by what the kernel counts of disks."""
    method, streams, line = ends.facts.method, ends.facts.streams, ends.line
    accounts = {SOURCE_CPU: ends.source, DEST_CPU: ends.dest}
    loads = {name: end.processor / (end.wall * streams) for name, end in accounts.items() if end.wall}
    known = ", ".join(f"at the {HOSTS[name]} {percent_text(load)} of a processor" for name, load in loads.items())
    evidence = f"{method} used {known} for each stream" if known else f"nothing is known of {method}'s processor time"
    if ends.is_throttled:
        return _slow_network(ends, f"the transfer by {method} was held to bwlimit {ends.sent}", evidence)
    capped = {name: min(1.0, load) for name, load in loads.items()}  # a program and its ssh may use two processors
    # Its time includes that of the connection, in which no disk is busy.
    disks = {name: share for name, share in ends.busy_disks.items() if share >= _FULL}
    name = max(disks, key=lambda one: disks[one], default=NONE)
    slower = {one: load for one, load in capped.items() if load >= max(_BUSY, disks.get(name, 0.0))}
    name = max(slower, key=lambda one: slower[one], default=name)
    if name in DISKS:
        return _slow_disk(ends, name, 0.0), evidence
    if name in PROCESSORS:
        end = accounts[name]
        used = f"the {HOSTS[name]} used {percent_text(loads[name])} of a processor for each stream of {method}"
        is_encryption = end.encryption >= end.processor * _ENCRYPTS_FROM
        share = percent_text(min(1.0, end.encryption / end.processor))
        most = f", {share} of that for encryption" if is_encryption else ""
        return slow_part(name, CIPHER if is_encryption else "", f"{used}{most} {ends.sent}"), evidence
    if line.interface and ends.rate >= _FULL * line.interface:
        return _slow_network(ends, f"the network was full with {method} {ends.sent}", evidence)
    why = f"what {method} waited for cannot be seen from outside {ends.sent}"
    return nothing_slow(why, "method: stream accounts for its time and tells more"), f"{evidence}; {why}"


def _slow_network(ends: _Ends, waited: str, evidence: str) -> tuple[SlowPart, str]:
    """Return what on the way held the connections back, with the evidence."""
    line, rate = ends.line, ends.rate
    if ends.is_throttled:
        share = f", {percent_text(rate / line.limit)} of what bwlimit allows" if line.limit else ""
        return slow_part(NETWORK, BWLIMIT, f"{waited}{share}"), f"{evidence}{share}"
    met = ends.source.met
    limit = find_limit(met, rate, line.interface) if met is not None else None
    if limit:
        return slow_part(NETWORK, limit.cause, f"{waited}, and {limit.evidence}", limit.advice), (
            f"{evidence}; {limit.evidence}"
        )
    if line.interface and rate >= _FULL * line.interface:
        share = f", {percent_text(rate / line.interface)} of what the network interface carries"
        return slow_part(NETWORK, FULL, f"{waited}{share}"), f"{evidence}{share}"
    return slow_part(NETWORK, "", waited), evidence


def _slow_disk(ends: _Ends, name: str, waiting: float) -> SlowPart:
    """Return a slow disk by what the kernel counts of it, or by the share of the time spent in calls."""
    host, disk, reads = HOSTS[name], ends.of(name).disk, name == SOURCE_DISK
    if disk.is_counted and disk.share >= min(waiting, _BUSY):
        observed = f"the {host}'s disk was busy for {of_time(disk.share, ends.wall)} {disk.moved_text(reads)}"
    else:
        calls = "reading from" if reads else "writing to"
        observed = f"the {host} spent {of_time(waiting, ends.wall)} {calls} its disk {ends.sent}"
    trouble = disk.pool_trouble
    if not trouble:
        return slow_part(name, "", observed)
    remedy = "repair the pool first (zpool status)" if disk.is_degraded else _ROOM_IN_POOL
    return slow_part(name, "", f"{observed}, and {trouble}", remedy)


_ROOM_IN_POOL = "free space in the pool or extend it, since ZFS writes slowly from 80 % on"


def _of_disks(ends: _Ends) -> list[str]:
    """Return clauses on what is known of the disks, for the evidence."""
    found = []
    for side, reads, disk in (("source", True, ends.source.disk), ("destination", False, ends.dest.disk)):
        if disk.is_counted:
            found.append(
                f"the {side}'s disk was busy for {percent_text(disk.share)} of its time {disk.moved_text(reads)}"
            )
        if disk.pool_trouble:
            found.append(f"at the {side}, {disk.pool_trouble}")
    return found
