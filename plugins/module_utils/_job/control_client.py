# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pause, slow, resume or cancel the transfers of this user on this host, from outside their jobs."""

from __future__ import annotations

import time
from typing import Callable, Collection, NamedTuple, Sequence, cast

from .._engine.net.ticket_file import OWN, BadTicket, read_ticket, write_ticket
from .._model.rate import parse_rate
from .._model.ticket import FREE, MAX_RATE, Ticket
from . import launcher
from .state import RUNNING, JobFolder, JobInfo, list_jobs

PAUSED, RUNS, CANCELLED = "paused", "running", "cancelled"
_TRANSFERS = ("drive", "serve")
_IN_FORCE = 6.0  # seconds, of which a job needs half a one
_ENDED = 3.0  # seconds in which a cancelled job ends by itself, having told its peer
_POLL = 0.05


class Wish(NamedTuple):
    """What should become of transfers; None: what it was."""

    state: str | None = None
    rate: int | None = None  # bytes a second, 0 for no limit


class ControlResult(NamedTuple):
    """One side of a transfer before and after a command."""

    before: JobInfo
    after: JobInfo
    changed: bool
    problem: str = ""


def parse_wish(state: str | None, bwlimit: str | None) -> Wish:
    """Return what is wished in the words of a user. Raises ValueError."""
    if state not in (None, RUNS, PAUSED, CANCELLED):
        raise ValueError(f"state is {state!r}, and {RUNS}, {PAUSED} or {CANCELLED} is expected")
    rate = None if bwlimit is None else parse_rate(bwlimit)
    if rate is not None and rate > MAX_RATE:
        raise ValueError(f"{bwlimit!r} is no rate of any network: use 0 for no limit")
    return Wish(state, rate)


def wanted_ticket(ticket: Ticket, wish: Wish) -> Ticket:
    """Return the ticket that fulfils a wish. Pure."""
    if wish.state is not None:
        ticket = ticket._replace(paused=wish.state == PAUSED, cancelled=wish.state == CANCELLED)
    return ticket if wish.rate is None else ticket._replace(rate=wish.rate)


def why_not(job: JobInfo, wish: Wish, obeys: bool, foreign_daemon: bool) -> str:
    """Return why a running job cannot do as it is wished; empty if it can. Pure.

    ``obeys``: it reads tickets. ``foreign_daemon``: it goes through a daemon that is not its own.
    """
    named = f"transfer {job['id']}"
    if wish.state == CANCELLED:
        return ""
    if job["part"] not in _TRANSFERS:
        return f"{named} is a comparison of trees, which can only be cancelled"
    if job["part"] == "serve" and foreign_daemon:
        return (
            f"{named} goes through the rsync daemon of this host, which is not its own. Run this on "
            f"{job['peer'] or 'the host that connects'}, which connects to it"
        )
    if not obeys:
        return (
            f"{named} was started by an earlier version of longhaul.fleet, and cannot be paused or slowed. Cancel it, "
            "and run its task again to resume it"
        )
    return ""


def select(jobs: Sequence[JobInfo], identities: Collection[str] | None) -> tuple[list[JobInfo], list[str]]:
    """Return the jobs of these transfers (None: all), and the ids that no job has. Pure."""
    if identities is None:
        return [job for job in jobs if job["part"] in _TRANSFERS], []
    known = {job["id"] for job in jobs}
    return [job for job in jobs if job["id"] in identities], [one for one in identities if one not in known]


def tell(jobs: Sequence[JobInfo], wish: Wish, predict: bool) -> list[ControlResult]:
    """Let jobs know what is wished, and wait until that is in force; ``predict``: only say what would change."""
    started = [_begin(job, wish, predict) for job in jobs]
    deadline = time.monotonic() + (_ENDED if wish.state == CANCELLED else _IN_FORCE)
    return [_end(told, ticket, wish, deadline) for told, ticket in started]


def _begin(job: JobInfo, wish: Wish, predict: bool) -> tuple[ControlResult, Ticket | None]:
    """Write the ticket of a job; it is None if there is nothing to wait for."""
    told = ControlResult(job, job, False)
    if job["state"] not in RUNNING:
        return told, None
    folder = JobFolder(job["id"], job["side"])
    foreign_daemon = bool(folder.request.get("settings", {}).get("rsyncd_module"))
    problem = why_not(job, wish, _obeys(folder), foreign_daemon)
    if problem:
        return told._replace(problem=problem), None
    try:
        before = read_ticket(folder.path, OWN)
    except BadTicket:
        before = FREE
    ticket = wanted_ticket(before, wish)
    if ticket == before and wish.state != CANCELLED:
        return told, ticket if not predict else None  # it may have been written a moment ago
    if not predict:
        write_ticket(folder.path, OWN, ticket)
    limit = {} if ticket.rate is None else {"bwlimit": ticket.rate}
    state = CANCELLED if wish.state == CANCELLED else job["state"]
    after = cast(JobInfo, {**job, "state": state, "paused": ticket.paused, **limit})
    return ControlResult(job, after, True), ticket if not predict else None


def _end(told: ControlResult, ticket: Ticket | None, wish: Wish, deadline: float) -> ControlResult:
    """Wait until a ticket is in force, or the job has ended."""
    if ticket is None:
        return told
    job = told.before
    folder = JobFolder(job["id"], job["side"])
    if wish.state == CANCELLED:
        if _obeys(folder):
            _wait(lambda: not folder.is_running(), deadline)
        launcher.stop(folder, succeeded=False)
        if folder.is_running():
            return told._replace(
                problem=f"process {job['pid']} of transfer {job['id']} does not end, although it was killed: a disk "
                "or a network file system that it waits for does not answer. Look at dmesg on this host"
            )
    elif not _wait(lambda: folder.status.get("ticket") == ticket.dump() or not folder.is_running(), deadline):
        return told._replace(
            problem=f"transfer {job['id']} was told, but has not obeyed after {_IN_FORCE:.0f} seconds: its process "
            f"{job['pid']} waits for a disk, or the host is overloaded. It obeys when it can; look at its state with "
            "transfer_info"
        )
    return told._replace(after=_now(job, CANCELLED if wish.state == CANCELLED else "failed"))


def _obeys(folder: JobFolder) -> bool:
    """Return whether the job of a folder reads tickets: its status says what stands in the one that it has read."""
    return "ticket" in folder.status or folder.status.get("state") == "starting"


def _wait(is_so: Callable[[], bool], deadline: float) -> bool:
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def _now(job: JobInfo, gone: str) -> JobInfo:
    """Return a job as it is now; its state is ``gone`` if its result was collected meanwhile."""
    same = [one for one in list_jobs() if (one["id"], one["side"]) == (job["id"], job["side"])]
    return same[0] if same else cast(JobInfo, {**job, "state": gone, "paused": False})
