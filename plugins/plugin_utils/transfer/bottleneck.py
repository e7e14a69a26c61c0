# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Name what a transfer waited for, from what both ends say that their time went into. Pure.

A transfer is a chain: read, encrypt, network, decrypt, write. What is behind the slowest link of it waits for data, and
what is before it waits until it may send. So the network is slow where both wait, an end is slow where it is at work
while the other one waits, and processor time tells whether it computes or waits for its disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Tuple, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core import time_accounting
from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._core.time_accounting import QUEUED

from .tcp_limits import LINE_IS_FULL, Limit, LineConditions, find_limit, number_said, parse_met

CONTENTION = "contention"
SOURCE_DISK, SOURCE_CPU, NETWORK = "source_disk", "source_cpu", "network"
DEST_CPU, DEST_DISK, NONE = "destination_cpu", "destination_disk", "none"

_STANDS_OUT = 0.25  # of the time
_BUSY = 0.8  # of a processor for each stream: then a program has no time left to wait
_CONTENDED_FROM = 1 / 3  # of the time with the processor: so long it waited for others that used it
_FULL = 0.7  # of the speed of an interface, or of bwlimit


@dataclass(frozen=True)
class Line:
    """What is known of the way between the hosts, in bytes a second; 0: nothing."""

    interface: int = 0  # the slower one of the two
    limit: int = 0  # bwlimit


@dataclass(frozen=True)
class Shares:
    """What the time of one end went into, as shares that add up to 1."""

    work: float = 0.0  # waiting for its own disk: reading at the source, writing at the destination
    processor: float = 0.0  # computing, or waiting for a processor
    queued: float = 0.0  # waiting for one; a part of processor
    other: float = 0.0  # waiting for what is beyond: until the network takes data, or brings some
    throttled: float = 0.0  # by bwlimit; a part of other


class Bottleneck(TypedDict):
    """What held a transfer back, as its result has it."""

    name: str
    cause: str  # of a network (see path_limits) or a processor that is slow, as far as the system tells; else empty
    evidence: str
    advice: str
    source: dict[str, float]  # the seconds of each end, in words
    dest: dict[str, float]


Seconds = Mapping[str, Tuple[float, float]]  # by occupation: how long, and how much of that with the processor


@dataclass(frozen=True)
class Account:
    """What one end said of its time, as far as that can be read."""

    wall: float = 0.0
    processor: float = 0.0
    roles: Mapping[str, Seconds] = field(default_factory=dict)
    met: LineConditions | None = None  # what its connections met, as far as it sends


def find_bottleneck(spent: Mapping[str, object], method: str, streams: int, bytes_sent: int, line: Line) -> Bottleneck:
    """Return what held a transfer back, what says so, and what to do about it.

    ``spent`` is Outcome.spent, which came from hosts: what cannot be read there counts as nothing said.
    """
    ends = {side: parse_account(spent.get(side)) for side in ("source", "dest")}
    wall = max(end.wall for end in ends.values())
    if wall < time_accounting.SHORTEST:
        name, evidence = NONE, f"the transfer took {wall:.1f} seconds, which is too short to tell"
    elif method == "stream":
        name, evidence, contended = _of_stream(ends, streams)
        if contended:
            return _result(ends, name, CONTENTION, evidence, _CONTENDED[name])
    else:
        name, evidence = _from_outside(ends, method, streams, bytes_sent / wall, line)
    rate = bytes_sent / max(wall, 1e-9)
    limit = _find_limit(ends["source"], rate, line) if name == NETWORK else None
    if limit:
        return _result(ends, name, limit.cause, f"{evidence}; {limit.evidence}", limit.advice)
    return _result(ends, name, "", evidence, _advice(name, method, ends, rate, line))


def met_by(spent: Mapping[str, object]) -> LineConditions | None:
    """Return what the connections of the source met, by the same account; None if it said nothing."""
    return parse_account(spent.get("source")).met


def _result(ends: Mapping[str, Account], name: str, cause: str, evidence: str, advice: str) -> Bottleneck:
    return {
        "name": name,
        "cause": cause,
        "evidence": evidence,
        "advice": advice,
        "source": _in_words(ends["source"], "source"),
        "dest": _in_words(ends["dest"], "dest"),
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


def _of_stream(ends: Mapping[str, Account], streams: int) -> tuple[str, str, bool]:
    """Judge by the threads that had most to do: the connections' send large files, the leader sends small ones.

    Returns the name, the evidence, and whether it is a processor that others use.
    """
    source = {role: _shares(ends["source"], role, (time_accounting.SEND, time_accounting.THROTTLED)) for role in _ROLES}
    busy = {role: _total(ends["source"], role) for role in _ROLES}
    role = max(_ROLES, key=lambda one: busy[one])
    ours, theirs = source[role], _shares(ends["dest"], role, (time_accounting.RECEIVE, time_accounting.ANSWER))
    if role == time_accounting.LEAD:  # the leader also waits for the destination to have done its part
        ours = _shares(ends["source"], role, (time_accounting.SEND, time_accounting.THROTTLED, time_accounting.ANSWER))
    name, _share = decide(ours, theirs)
    evidence = (
        f"the source spent {_percent(ours.work)} of its time reading, {_percent(ours.processor)} with the processor "
        f"and {_percent(ours.other)} waiting to send; the destination spent {_percent(theirs.other)} waiting for data, "
        f"{_percent(theirs.processor)} with the processor and {_percent(theirs.work)} writing"
        + (
            f"; large files travelled over {counted(streams, 'connection', 'connections')}"
            if role == time_accounting.LINK
            else ""
        )
    )
    slow = {SOURCE_CPU: ours, DEST_CPU: theirs}.get(name)
    if slow is None or slow.queued < slow.processor * _CONTENDED_FROM:
        return name, evidence, False
    return name, f"{evidence}; for {_percent(slow.queued)} of its time it waited for a processor that others used", True


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
    )


def _from_outside(ends: Mapping[str, Account], method: str, streams: int, rate: float, line: Line) -> tuple[str, str]:
    """Judge a program of which only the processor time is known, and that only where it is a child of the job."""
    loads = {side: end.processor / (end.wall * streams) for side, end in ends.items() if end.wall}
    known = ", ".join(f"at the {_WORDS[side]} {_percent(load)} of a processor" for side, load in loads.items())
    evidence = f"{method} used {known} for each stream" if known else f"nothing is known of {method}'s processor time"
    name = max(loads, key=lambda side: loads[side]) if loads else ""
    if name and loads[name] >= _BUSY:
        return (SOURCE_CPU if name == "source" else DEST_CPU), evidence
    if line.limit and rate >= _FULL * line.limit:
        return NETWORK, f"{evidence}; it sent {_percent(rate / line.limit)} of what bwlimit allows"
    if line.interface and rate >= _FULL * line.interface:
        return NETWORK, f"{evidence}; it sent {_percent(rate / line.interface)} of what the network interface carries"
    return NONE, f"{evidence}; what it waited for cannot be seen from outside"


_WORDS = {"source": "source", "dest": "destination"}
_ADVICE = {
    SOURCE_DISK: "Look at the source's disks (iostat -x): neither a faster network nor more streams help while they "
    "are slow or busy with other things",
    DEST_DISK: "Look at the destination's disks (iostat -x): neither a faster network nor more streams help while "
    "they are slow or busy with other things",
    SOURCE_CPU: "Save processor time at the source: compress: auto or none, more streams where cores are idle, and "
    "encryption: none if the network is trusted",
    DEST_CPU: "Save processor time at the destination: compress: auto or none, more streams where cores are idle, and "
    "encryption: none if the network is trusted",
}
_CONTENDED = {
    name: f"The {where}'s processors have more to do than they can do at once: let other work there wait (top shows "
    "it), or give the host more of them; fewer streams and less compression leave more to the rest"
    for name, where in ((SOURCE_CPU, "source"), (DEST_CPU, "destination"))
}


def _advice(name: str, method: str, ends: Mapping[str, Account], rate: float, line: Line) -> str:
    if name == NETWORK:
        if _is_throttled(ends["source"], rate, line):
            return "It is bwlimit that holds the transfer back: raise it where the network has more to give"
        if line.interface and rate >= _FULL * line.interface:
            return LINE_IS_FULL
        return (
            "The network carries less than the hosts could send: look for loss, a small MTU, other traffic or a slow "
            "part of the way (role nic, ethtool, iperf3), and try compress or more streams"
        )
    if name == NONE:
        if method == "stream" or max(end.wall for end in ends.values()) < time_accounting.SHORTEST:
            return "Nothing stands out, so there is nothing to change"
        return "Method stream accounts for its time and tells more"
    return _ADVICE[name]


def _find_limit(source: Account, rate: float, line: Line) -> Limit | None:
    """Return what on the way held the source's connections back, unless bwlimit did."""
    if source.met is None or _is_throttled(source, rate, line):
        return None
    return find_limit(source.met, rate, line.interface)


def _is_throttled(source: Account, rate: float, line: Line) -> bool:
    """Whether bwlimit holds the transfer back."""
    throttled = sum(seconds.get(time_accounting.THROTTLED, (0.0, 0.0))[0] for seconds in source.roles.values())
    return throttled > source.wall * _STANDS_OUT or bool(line.limit and rate >= _FULL * line.limit)


def parse_account(said: object) -> Account:
    """Read what one end said (time_accounting.Account); whatever is no number of seconds is left out."""
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
        number_said(said.get("wall")), number_said(said.get("processor")), found, parse_met(said.get("line"))
    )


def _in_words(end: Account, side: str) -> dict[str, float]:
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
    return found


def _percent(share: float) -> str:
    return f"{share:.0%}"
