# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where each pair of a fleet stands, from what the control node keeps of it and what its hosts say. Pure.

Nothing here knows what a job is, but that it moves a tree between two hosts by a transfer with a known id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ..common.units import seconds_left
from .answers import ListedTransfer


class State(str, Enum):
    """What happens with a pair, in the order in which a person wants to see them."""

    FAILED = "failed"
    UNREACHABLE = "unreachable"
    INTERRUPTED = "interrupted"  # its process is gone or it was cancelled: the next run resumes it
    PAUSED = "paused"
    SWITCHING = "switching"  # hooks of the switch run, or one of them failed
    STOPPED = "stopped"  # the source is stopped for the cutover, and no transfer runs
    RUNNING = "running"
    ENDED = "ended"  # the transfer has ended, and its result was not collected yet
    WAITING = "waiting"  # for its turn, or for the next phase
    NOT_BEGUN = "not begun"
    SWITCHED = "switched"  # and not compared
    DONE = "done"


_RESUMABLE = ("interrupted", "cancelled")  # states of a job that its task resumes
FINAL = (State.SWITCHED, State.DONE)
_GOES_ON = (State.RUNNING, State.ENDED, State.WAITING, State.NOT_BEGUN, State.STOPPED, State.SWITCHING, State.PAUSED)


@dataclass(frozen=True)
class Standing:
    """Where a job stands by what is kept of it, without its hosts."""

    phase: str = ""  # that it is in or has finished last; empty: none, or not known
    state: State = State.NOT_BEGUN
    running_phase: str = ""  # the phase of a transfer that runs now
    bytes_done: int = 0
    bytes_total: int = 0  # 0: not known
    bytes_sent: int = 0  # by the last transfer
    bytes_apparent: int = 0
    bottleneck: str = ""  # a sentence on what held back the last transfer
    age: float | None = None  # seconds since it was written; None: nothing is kept
    error: str = ""
    next: str = ""  # what to do about the error


@dataclass(frozen=True)
class Job:
    """A job of the fleet: its trees, the ids of its transfer and its comparison, and what is kept of it."""

    name: str
    src_host: str
    src: str
    dest_host: str
    dest: str
    transfer: str = ""
    comparison: str = ""
    standing: Standing = Standing()
    holder: str = ""  # which control node works on it


@dataclass(frozen=True)
class Row:
    """Where a pair stands."""

    name: str  # of the job, or the id of a transfer that is of none
    src_host: str
    src: str
    dest_host: str
    dest: str
    phase: str
    state: State
    method: str = ""
    bytes_done: int = 0
    bytes_total: int = 0
    files_done: int = 0
    files_total: int = 0
    rate: float | None = None  # bytes a second; None: not known, or nothing runs
    age: float | None = None  # seconds since the figures were true; None: there are none
    error: str = ""
    next: str = ""
    holder: str = ""  # which control node works on it; empty: none, or not known
    bytes_sent: int = 0  # over the wire, by the last transfer
    bytes_apparent: int = 0  # with holes; 0: not known
    is_job: bool = True  # else a transfer that is of no job
    bottleneck: str = ""  # a sentence on what held back the last transfer; empty: nothing, or not known

    @property
    def eta(self) -> float | None:
        """The seconds until the running transfer ends at this rate; None if that is not known."""
        return seconds_left(self.bytes_done, self.bytes_total, self.rate) if self.state is State.RUNNING else None


@dataclass(frozen=True)
class FleetTotals:
    """What all rows come to."""

    states: Mapping[str, int]  # how many rows are in each state, without those that none is in
    bytes_done: int
    bytes_total: int
    bytes_sent: int
    bytes_apparent: int
    unknown: int  # rows whose size is not known yet, and that are not done: the total lacks them
    rate: float
    eta: float | None  # seconds until the known rest has been sent at this rate; None if nothing runs


def hosts_first(jobs: Iterable[Job]) -> list[str]:
    """Return the hosts that are asked first: a destination knows whether something runs, and they are mostly fewer."""
    return list(dict.fromkeys(job.dest_host for job in jobs))


def hosts_next(jobs: Iterable[Job], seen: Mapping[str, Sequence[ListedTransfer]]) -> list[str]:
    """Return the sources that know more: of transfers that they drive, and where the destination did not answer.

    ``seen`` has what each host said that answered.
    """
    asked = []
    for job in jobs:
        said = seen.get(job.dest_host)
        mine = _of(job, "dest", said or ())
        if said is None or any(one.part == "serve" and one.method != "stream" and one.runs for one in mine):
            asked.append(job.src_host)
    return [host for host in dict.fromkeys(asked) if host not in seen]


def make_rows(
    jobs: Sequence[Job], seen: Mapping[str, Sequence[ListedTransfer]], failed: Mapping[str, str]
) -> list[Row]:
    """Return a row for each job, and one for each other transfer of the hosts that answered.

    ``failed`` has the hosts that did not answer, and why.
    """
    rows = [_row(job, seen, failed) for job in jobs]
    ours = {(one.host, one.id, one.side) for job in jobs for one in _sides(job, seen)}
    others: dict[tuple[str, str, str], list[ListedTransfer]] = {}
    for one in (one for said in seen.values() for one in said):
        if (one.host, one.id, one.side) not in ours and one.part != "owners":
            ends = (one.host, one.peer) if one.side == "source" else (one.peer, one.host)
            others.setdefault((one.id, *ends), []).append(one)
    return rows + [_other_row(*key, sides) for key, sides in others.items()]


def sum_up(rows: Sequence[Row]) -> FleetTotals:
    """Return what all rows come to.

    What failed or is paused does not go on by itself, so the time left does not count it. A transfer of no job counts
    only while it runs: what others left behind is no part of a fleet's work.
    """
    states: dict[str, int] = {}
    for row in rows:
        states[row.state.value] = states.get(row.state.value, 0) + 1
    counted = [row for row in rows if row.is_job or row.state in (State.RUNNING, State.PAUSED)]
    left = [row for row in counted if row.state in _GOES_ON]
    rate = sum(row.rate or 0.0 for row in counted)
    rest = sum(max(0, row.bytes_total - row.bytes_done) for row in left if row.state is not State.PAUSED)
    longest = max((row.eta for row in counted if row.eta is not None), default=0.0)
    return FleetTotals(
        states={state.value: states[state.value] for state in State if state.value in states},
        bytes_done=sum(row.bytes_done for row in counted),
        bytes_total=sum(row.bytes_total for row in counted),
        bytes_sent=sum(row.bytes_sent for row in counted),
        bytes_apparent=sum(row.bytes_apparent for row in counted),
        unknown=sum(not row.bytes_total for row in left),
        rate=rate,
        eta=max(rest / rate, longest) if rate else None,
    )


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in the order in which a person wants to see them, else as they were."""
    order = {state: number for number, state in enumerate(State)}
    return sorted(rows, key=lambda row: order[row.state])


def _of(job: Job, side: str, said: Sequence[ListedTransfer]) -> list[ListedTransfer]:
    return [one for one in said if one.side == side and one.id in (job.transfer, job.comparison)]


def _sides(job: Job, seen: Mapping[str, Sequence[ListedTransfer]]) -> list[ListedTransfer]:
    """Return what the hosts of a job say of it. What another host says of it is nothing to it."""
    return [*_of(job, "source", seen.get(job.src_host, ())), *_of(job, "dest", seen.get(job.dest_host, ()))]


def _row(job: Job, seen: Mapping[str, Sequence[ListedTransfer]], failed: Mapping[str, str]) -> Row:
    standing, sides = job.standing, _sides(job, seen)
    row = Row(
        *(job.name, job.src_host, job.src, job.dest_host, job.dest, standing.phase, standing.state),
        bytes_done=standing.bytes_done,
        bytes_total=standing.bytes_total,
        bytes_sent=standing.bytes_sent,
        bytes_apparent=standing.bytes_apparent,
        bottleneck=standing.bottleneck,
        age=standing.age,
        error=standing.error,
        next=standing.next,
        holder=job.holder,
    )
    gone = [f"{host}: {failed[host]}" for host in (job.dest_host, job.src_host) if host in failed]
    if sides and (any(one.runs for one in sides) or standing.state not in (*FINAL, State.FAILED)):
        row = _with_sides(replace(row, phase=standing.running_phase or row.phase), sides)
        return replace(row, error=row.error or "; ".join(gone))
    if gone:
        return replace(row, state=State.UNREACHABLE, error="; ".join(gone), next="")
    return row


def _other_row(identity: str, src_host: str, dest_host: str, sides: Sequence[ListedTransfer]) -> Row:
    roots = {one.side: one.root for one in sides}
    row = Row(
        *(identity, src_host, roots.get("source", ""), dest_host, roots.get("dest", "")),
        "transfer",
        State.RUNNING,
        is_job=False,
    )
    return _with_sides(row, sides)


def _with_sides(row: Row, sides: Sequence[ListedTransfer]) -> Row:
    """Return a row with what its hosts say: the side that knows most, and what is wrong on either."""
    running = [one for one in sides if one.runs]
    best = max(running or sides, key=lambda one: (one.bytes_total > 0, one.part == "drive", one.bytes_done))
    wrong = next((one for one in sides if one.failure and not running), None)
    paused = any(one.paused for one in running)
    rates = [one.rate for one in (best, *running) if one.rate is not None and not paused]
    return replace(
        row,
        phase="verify" if best.part == "compare" else row.phase,
        state=_state(best, bool(running), paused),
        method=best.method,
        bytes_done=best.bytes_done,
        bytes_total=best.bytes_total or row.bytes_total,
        bytes_sent=best.bytes_sent or row.bytes_sent,
        bytes_apparent=best.bytes_apparent or row.bytes_apparent,
        files_done=best.files_done,
        files_total=best.files_total,
        rate=rates[0] if running and rates else None,
        age=best.age,
        error=f"{wrong.host}: {wrong.failure}" if wrong else "",
        next="Run the same command again: it resumes" if wrong else "",
    )


def _state(best: ListedTransfer, runs: bool, paused: bool) -> State:
    if runs:
        return State.PAUSED if paused else State.RUNNING
    ended = {"failed": State.FAILED, "paused": State.PAUSED, **dict.fromkeys(_RESUMABLE, State.INTERRUPTED)}
    return ended.get(best.state, State.ENDED)
