# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Obey the tickets of a running job: pause or slow its programs, end it, and report the ticket that is in force.

Programs are slowed by stopping them (SIGSTOP) and letting them go on. A process between a program and its line would
cost a third of rsync's processor time for every transfer, paused or not. So nothing stands between them, and a program
that may run freely costs nothing. Only the process that moves contents is stopped: of rsync's processes the one without
children of its own. Those of the peer, ssh, and rsync's own other process at a destination go on, and tell each other
that they are alive.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from typing import Callable, Collection, Iterator, NamedTuple, Sequence

from .._core.context import Context
from .._engine.net.ticket_file import POLL, Tickets
from .._model.ticket import Ticket, paused_too_long

PROGRAMS = {"rsync": "rsync", "rsyncd": "rsync", "scp": "scp", "sftp": "sftp"}  # by method
_LISTENS = b"--no-detach"  # in the arguments of the daemon that waits for connections
_SEARCH = 0.25  # seconds between two searches for processes
_SLICES = (0.002, 0.05)  # seconds in which they run at a time where there is a limit, at least and at most
_BURST = 8  # a burst is at most what may pass in a second, divided by this
_PEER_LEARNS = 2 * POLL  # seconds until the peer knows of a ticket, where the method tells it


class ProgramProcess(NamedTuple):
    """A process of this host, which may run a program of the job."""

    pid: int
    parent: int
    name: str
    listens: bool = False  # it is a daemon that waits for connections


def choose(processes: Collection[ProgramProcess], job: int, name: str) -> list[int]:
    """Return the processes below ``job`` that move contents: those of this name that have no child of it. Pure."""
    children: dict[int, list[ProgramProcess]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    below = list(children.get(job, []))
    for process in below:  # grows while it is walked
        below += children.get(process.pid, [])
    return sorted(
        process.pid
        for process in below
        if process.name == name
        and not (process.listens and process.parent == job)
        and not any(child.name == name for child in children.get(process.pid, []))
    )


def list_processes(name: str) -> list[ProgramProcess]:
    """Return all processes; of those of this name also whether they listen."""
    if not os.path.isdir("/proc/self"):
        return _ask_ps(name)
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                found.append(_from_proc(int(entry), name))
    return found


def _from_proc(pid: int, name: str) -> ProgramProcess:
    with open(f"/proc/{pid}/stat", "rb") as stream:
        head, _parenthesis, rest = stream.read().rpartition(b")")
    own = os.fsdecode(head.partition(b"(")[2])
    listens = False
    if own == name:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            listens = _LISTENS in stream.read().split(b"\0")
    return ProgramProcess(pid, int(rest.split()[1]), own, listens)


def _ask_ps(name: str) -> list[ProgramProcess]:
    from .._core import subprocesses  # here, since most systems and all transfers without programs do without it

    found = []
    for line in subprocesses.run_command(["ps", "-axwwo", "pid=,ppid=,comm=,args="]).splitlines():
        words = line.split()
        if len(words) > 2 and words[0].isdigit() and words[1].isdigit():
            own = os.path.basename(words[2])
            listens = own == name and os.fsdecode(_LISTENS) in words[3:]
            found.append(ProgramProcess(int(words[0]), int(words[1]), own, listens))
    return found


def can_count() -> bool:
    """Return whether this system tells how many bytes a process has written, without which there is no limit."""
    return os.path.exists("/proc/self/io")


def written(pid: int) -> int:
    """Return how many bytes a process has written; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/io", "rb") as stream:
            return int(stream.read().split(b"\n")[1].split()[1])
    return 0


class _Guard:
    """A process that lets go on what is stopped, where the job was killed: nothing else would."""

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(reader)
            return
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.dup2(reader, 0)
            os.closerange(1, min(os.sysconf("SC_OPEN_MAX"), 65536))
            _let_go_on_at_end()
        finally:
            os._exit(0)

    def tell(self, pids: Sequence[int]) -> None:
        """Let it know which processes may be stopped."""
        with contextlib.suppress(OSError):
            os.write(self._writer, b" ".join(b"%d" % pid for pid in pids) + b"\n")

    def close(self) -> None:
        """End it."""
        os.close(self._writer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _let_go_on_at_end() -> None:
    last, data = b"", b""
    while True:
        piece = os.read(0, 1 << 16)
        if not piece:
            break
        *lines, data = (data + piece).split(b"\n")
        last = lines[-1] if lines else last
    _signal([int(word) for word in last.split()], signal.SIGCONT)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


class ProcessThrottle:
    """Stops the programs of a name below this process, and lets them go on; ``step`` is called again and again."""

    def __init__(self, name: str, look: Callable[[str], Collection[ProgramProcess]] = list_processes) -> None:
        self._name, self._look = name, look
        self._job = os.getpid()
        self._pids: list[int] = []
        self._known: dict[int, int] = {}  # what each had written
        self._next_search = 0.0
        self._stopped = False
        self._guard: _Guard | None = None
        self._tokens, self._last = 0.0, time.monotonic()
        self._speed = 0.0  # bytes a second while they run

    def step(self, paused: bool, rate: int, wait: Callable[[float], object], longest: float) -> None:
        """Do what is due, and wait at most ``longest`` seconds (``wait`` takes seconds, and may return earlier)."""
        if not paused and not rate:
            self.release()
            wait(longest)
        elif paused or not can_count():
            self._search()
            if paused:
                self._stop()
                self._tokens, self._last = 0.0, time.monotonic()
                self._known.clear()
            else:
                self._let_go_on()
            wait(min(longest, _SEARCH))
        else:
            self._limit(rate, wait, longest)

    def _limit(self, rate: int, wait: Callable[[float], object], longest: float) -> None:
        self._search()
        now, moved = time.monotonic(), self._moved()
        passed, self._last = now - self._last, now
        if not self._stopped and passed > 0:
            self._speed = moved / passed if not self._speed else (self._speed + moved / passed) / 2
        self._tokens = min(rate / _BURST, self._tokens + passed * rate) - moved
        if self._tokens <= 0:
            self._stop()
            wait(min(longest, _SEARCH, (rate / _BURST / 2 - self._tokens) / rate))
        else:
            self._let_go_on()
            least, most = _SLICES
            wait(min(most, max(least, self._tokens / self._speed)) if self._speed else least)

    def _moved(self) -> int:
        now = {pid: written(pid) for pid in self._pids}
        moved = sum(count - self._known[pid] for pid, count in now.items() if count > self._known.get(pid, count))
        self._known = now
        return moved

    def _search(self) -> None:
        if time.monotonic() < self._next_search:
            return
        self._next_search = time.monotonic() + _SEARCH
        found = choose(self._look(self._name), self._job, self._name)
        if found == self._pids:
            return
        _signal([pid for pid in self._pids if pid not in found], signal.SIGCONT)  # it has got a child that moves
        self._pids = found
        if self._guard is None and found:
            self._guard = _Guard()
        if self._guard is not None:
            self._guard.tell(found)
        if self._stopped:
            _signal(found, signal.SIGSTOP)

    def _stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            _signal(self._pids, signal.SIGSTOP)

    def _let_go_on(self) -> None:
        if self._stopped:
            self._stopped = False
            _signal(self._pids, signal.SIGCONT)

    def release(self) -> None:
        """Let all go on."""
        self._let_go_on()
        self._pids, self._next_search = [], 0.0
        self._known.clear()
        if self._guard is not None:
            self._guard.close()
            self._guard = None


class ControlLoop:
    """Obeys the tickets of a job until ``close``. ``report`` takes what the status should say, where that changes."""

    def __init__(self, context: Context, report: Callable[..., None]) -> None:
        self._context, self._report = context, report
        self._tickets = Tickets(context.folder, context.log)
        self._own_limit = int(context.settings["bwlimit"])
        self._timeout = float(context.settings["timeout"])
        self._throttle: ProcessThrottle | None = None
        program = PROGRAMS.get(context.settings["method"])
        if program:
            self._throttle = ProcessThrottle(program)
        if program and can_count():
            # The programs get no limit of their own, which nobody could raise while they run.
            self._throttled_limit = self._own_limit if context.part == "drive" else 0
            context.settings = {**context.settings, "bwlimit": 0}
        else:
            self._throttled_limit = 0
        self._over = threading.Event()
        self.failure = ""  # why the job ended, where the ticket ended it
        self._thread = threading.Thread(target=self._run, daemon=True, name="control")

    def _run(self) -> None:
        said, paused_since, cancelled_at = None, 0.0, 0.0
        while not self._over.is_set() and not self._context.stop.is_set():
            own, ticket = self._tickets.own.read(), self._tickets.read()
            now = time.monotonic()
            paused_since = (paused_since or now) if ticket.paused else 0.0
            cancelled_at = (cancelled_at or now) if ticket.cancelled else 0.0
            if (own, ticket) != said:
                self._govern(ticket, lambda _seconds: None)  # in force before it is reported
                said = own, ticket
                self._report(ticket=own.dump(), paused=ticket.paused, bwlimit=ticket.limit(self._own_limit))
            if paused_since and now - paused_since > self._timeout:
                self.failure = paused_too_long(self._timeout)
                self._context.last_words = self.failure
                self._context.stop.set()
            elif cancelled_at and now - cancelled_at >= _PEER_LEARNS:
                self._context.stop.set()
            else:
                self._govern(ticket, self._over.wait)
        if self._throttle is not None:
            self._throttle.release()  # what is stopped cannot end

    def _govern(self, ticket: Ticket, wait: Callable[[float], object]) -> None:
        if self._throttle is None:
            wait(POLL)
            return
        try:
            self._throttle.step(ticket.paused, ticket.limit(self._throttled_limit), wait, POLL)
        except OSError as error:  # no process can be started, or the like
            self._context.log(f"the programs cannot be held back: {error.strerror}")
            self._over.wait(POLL)

    @property
    def is_cancelled(self) -> bool:
        """Whether the ticket of either side ends the transfer."""
        return Tickets(self._context.folder, self._context.log).read().cancelled

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop obeying; all programs may run."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()


@contextlib.contextmanager
def obey_tickets(context: Context, report: Callable[..., None]) -> Iterator[ControlLoop]:
    """Obey the tickets of a job until this is left, from ``ControlLoop.start`` on: a job confines itself before."""
    control = ControlLoop(context, report)
    try:
        yield control
    finally:
        control.close()
