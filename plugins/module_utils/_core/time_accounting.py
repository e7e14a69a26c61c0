# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Account of the time that the threads of one end of a transfer spend.

Each thread says what it turns to: ``before = switch(SEND)``, and afterwards ``switch(before)``. Of each occupation the
time that passed and the processor time of the thread are added up: what lies between the two was waiting. That costs
two looks at clocks each time, so it is done where a thread may wait, and not for each file.

A job is a process and one end of one transfer, so there is one such account in a process.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from typing import TYPE_CHECKING, Dict, Iterable, Iterator, List

# occupations, the same for all roles: read: scan and read the tree; send: until the network takes data; throttled: by
# bwlimit; answer: until the peer has done its part; receive: until data comes; write; sync: to the disk
IDLE, READ, SEND, THROTTLED, ANSWER, RECEIVE, WRITE, SYNC = (
    "idle",
    "read",
    "send",
    "throttled",
    "answer",
    "receive",
    "write",
    "sync",
)
_WORK = frozenset({READ, THROTTLED, WRITE, SYNC})  # what does not wait for the peer
# no occupation: how long a thread that could run waited for a processor, whatever it was at
QUEUED = "queued"
# roles of threads: the one that leads the conversation, those of the data connections, those that write journals
LEAD, LINK, JOURNAL = "lead", "link", "journal"

SHORTEST = 1.0  # seconds: what is shorter is mostly beginning and end, and tells nothing
Seconds = Dict[str, List[float]]  # occupation -> [seconds, of which with the processor]


if TYPE_CHECKING:
    from typing import TypedDict

    from .disk_usage import DiskMeter, DiskUsage

    class TimeAccount(TypedDict, total=False):
        wall: float  # seconds of the whole end
        processor: float  # seconds, with those of the programs that have ended
        cores: int  # that it may use
        roles: dict[str, Seconds]  # added up over the threads of each
        disk: DiskUsage  # where a disk is watched
        encryption: float  # seconds with the processor of the busiest ssh of a program

else:  # making such a class takes time at each job's start
    TimeAccount = dict


class _Lane:
    """The account of one thread."""

    def __init__(self, role: str, occupation: str) -> None:
        self.role, self.occupation = role, occupation
        self.thread = threading.current_thread()
        self.spent: Seconds = {}
        self._wall, self._processor = time.monotonic(), time.thread_time()
        self._number = threading.get_native_id()
        self._queued = _queued(self._number)

    def switch(self, occupation: str) -> str:
        wall, processor = time.monotonic(), time.thread_time()
        spent = self.spent.setdefault(self.occupation, [0.0, 0.0])
        spent[0] += wall - self._wall
        spent[1] += processor - self._processor
        self._wall, self._processor = wall, processor
        before, self.occupation = self.occupation, occupation
        return before

    def note_queue(self) -> None:
        """Add up how long it has waited for a processor, as long as the thread lives."""
        before, self._queued = self._queued, _queued(self._number)
        self.spent.setdefault(QUEUED, [0.0, 0.0])[0] += max(0.0, self._queued - before)

    def credit(self, occupation: str, processor: float) -> None:
        self.spent.setdefault(occupation, [0.0, 0.0])[1] += processor


class WorkClock:
    """Counts the time of this thread, but not that in which it waited for a processor that others used."""

    def __init__(self) -> None:
        self._thread = threading.get_native_id()
        self._began, self._queued = time.monotonic(), _queued(self._thread)

    def seconds(self) -> float:
        """Return the seconds since the begin."""
        queued = _queued(self._thread) - self._queued
        return max(1e-6, time.monotonic() - self._began - queued)


def _queued(thread: int) -> float:
    """Return the seconds that a thread has waited for a processor since it began; 0 where the system does not say."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", "rb") as stream:
            return int(stream.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


_local = threading.local()
_lock = threading.Lock()
_lanes: list[_Lane] = []
_at_work = [0]
_begun = [time.monotonic()]
_meters: list[DiskMeter] = []
_encryption: dict[int, float] = {}  # process of ssh -> seconds with the processor
_ENCRYPTING = (b"ssh", b"sshd", b"sshd-session")  # names of programs that do hardly anything else


def watch_disk(meter: DiskMeter) -> None:
    """Count the use of a disk, too."""
    with _lock:
        _meters[:] = [meter]


def begin() -> None:
    """Count from now on, unless something was counted already: a conversation that goes on is one transfer."""
    with _lock:
        if not _lanes:
            _begun[0] = time.monotonic()
            for meter in _meters:
                meter.begin()


def enter(role: str, occupation: str) -> None:
    """Open an account for this thread, which begins with an occupation; an earlier one of the thread ends."""
    leave()
    _local.lane = lane = _Lane(role, occupation)
    with _lock:
        _lanes.append(lane)


def switch(occupation: str) -> str:
    """Turn to an occupation; gives the one before. Does nothing in a thread that has no account."""
    lane: _Lane | None = getattr(_local, "lane", None)
    return lane.switch(occupation) if lane is not None else IDLE


def leave() -> None:
    """Have nothing more to do, in a thread that may end before anybody asks for the account."""
    lane: _Lane | None = getattr(_local, "lane", None)
    if lane is not None:
        lane.switch(IDLE)
        lane.note_queue()


def credit(occupation: str, processor: float) -> None:
    """Count processor time that another process spent on what this thread would have had to do, or waits for."""
    lane: _Lane | None = getattr(_local, "lane", None)
    if lane is not None:
        lane.credit(occupation, processor)


def is_at_work() -> bool:
    """Return whether a thread of this end does something at this moment, or is held back by a limit of its own."""
    with _lock:
        return _at_work[0] > 0 or any(lane.occupation in _WORK and lane.thread.is_alive() for lane in _lanes)


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """Count as at work, in a thread that has no account."""
    with _lock:
        _at_work[0] += 1
    try:
        yield
    finally:
        with _lock:
            _at_work[0] -= 1


def account() -> TimeAccount:
    """Return what was spent so far, as plain data."""
    switch(switch(IDLE))  # the own account up to this moment
    roles: dict[str, Seconds] = {}
    with _lock:
        for lane in _lanes:
            if lane.thread.is_alive():
                lane.note_queue()
            role = roles.setdefault(lane.role, {})
            for occupation, (wall, processor) in list(lane.spent.items()):
                spent = role.setdefault(occupation, [0.0, 0.0])
                spent[0] += wall
                spent[1] += processor
        begun, meters = _begun[0], list(_meters)
    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    found: TimeAccount = {
        "wall": round(time.monotonic() - begun, 3),
        "processor": round(time.process_time() + programs.ru_utime + programs.ru_stime, 3),
        "cores": cores(),
        "roles": {
            role: {name: [round(value, 3) for value in spent] for name, spent in seconds.items()}
            for role, seconds in roles.items()
        },
    }
    for meter in meters:
        found["disk"] = meter.usage()
    if _encryption:
        found["encryption"] = round(max(list(_encryption.values())), 3)
    return found


def note_encryption(pids: Iterable[int]) -> None:
    """Note how much processor time those of these processes have used that are ssh; they may end at any time."""
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as stream:
                name, _parenthesis, rest = stream.read().rpartition(b")")
            if name.partition(b"(")[2] in _ENCRYPTING:
                fields = rest.split()
                _encryption[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cores() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on every system
        return os.cpu_count() or 1
