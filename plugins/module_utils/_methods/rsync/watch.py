# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Distinguish an rsync that waits for ever from one that is slow.

rsync's own ``--timeout`` cannot: where its processes wait for each other, they go on telling each other that they are
alive. And silence says nothing: one that compares contents reads for hours and prints nothing. So what counts is what
the processes at both ends read, write and compute.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Callable, Iterable, NamedTuple

from ..._core import time_accounting
from ..._core.die_with_parent import descendants

NOISE_BYTES = 512  # of each process within the limit: rsync's signs of life come to less than a quarter of it
NOISE_TICKS = 2  # of processor time, a hundredth of a second each
ON_ITS_WORD = 24 * 3600.0  # seconds for which only what the peer says of itself keeps a run: one huge file is hashed so
UNSEEN = 3600.0  # the least for a peer that cannot be asked, and compares no contents
TRAPPED, UNASKED = 5.0, 30.0  # seconds where a run has met what rsync waits for, and the peer can tell, or cannot
_OFTEN, _SELDOM = 0.2, 2.0  # seconds between looks at the processes here
_ASKS = 10  # times the peer is asked within the limit


class Vitals(NamedTuple):
    """What the processes of rsync at one end have done so far."""

    processes: int
    moved: int  # bytes that they read and wrote, files and connections alike
    ticks: int
    busy: bool = False  # one of them waits for a disk, or computes, right now

    def is_life_since(self, before: Vitals) -> bool:
        """Return whether they have done something since then."""
        return (
            self.busy
            or self.processes != before.processes
            or abs(self.moved - before.moved) >= NOISE_BYTES * self.processes
            or abs(self.ticks - before.ticks) >= NOISE_TICKS
        )


def vitals(pids: Iterable[int]) -> Vitals | None:
    """Read the activity of the rsync processes; None if none can be read."""
    found = []
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as stream:
                name, _parenthesis, rest = stream.read().rpartition(b")")
            if not name.endswith(b"(rsync"):
                continue
            fields = rest.split()
            with open(f"/proc/{pid}/io", "rb") as stream:
                moved = sum(int(line.split()[1]) for line in stream.read().splitlines()[:2])
            found.append(Vitals(1, moved, int(fields[11]) + int(fields[12]), fields[0] in (b"D", b"R")))
    if not found:
        return None
    moved, ticks = sum(one.moved for one in found), sum(one.ticks for one in found)
    return Vitals(len(found), moved, ticks, any(one.busy for one in found))


def vitals_below(pid: int) -> Vitals | None:
    """Read the activity of a process and its descendants, and note what an ssh among them has computed."""
    below = descendants(pid)
    time_accounting.note_encryption(below)
    return vitals([pid, *below])


def encode(found: Vitals | None) -> bytes:
    """Write down what was found, for the peer."""
    return b"longhaul-vitals " + b" ".join(b"%d" % number for number in found or ()) + b"\n"


def decode(text: bytes) -> Vitals | None:
    """Read what the peer wrote, among other lines; None if it could not tell."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [b"longhaul-vitals"] and len(words) == 5 and all(word.isdigit() for word in words[1:]):
            processes, moved, ticks, busy = (int(word) for word in words[1:])
            return Vitals(processes, moved, ticks, bool(busy))
    return None


class StallWatch:
    """Detects when a run of rsync has made no progress for ``limit`` seconds, on either side.

    ``ask_far`` looks on the peer; where that cannot tell (None), or nobody can here, the run counts as stalled
    only while ``is_suspect`` says that it has met what rsync is known to wait for; where both can tell, that takes less
    time. That a peer says that it is at work,
    or cannot be asked and sends signs of life, does not keep a run for ever in which nothing happens here: a hostile
    one could. ``may_hash``: whether the peer may have contents to compare. A run that ``is_paused`` waits for nothing
    but that.
    """

    def __init__(
        self,
        limit: float,
        ask_far: Callable[[], Vitals | None],
        is_suspect: Callable[[], bool] = lambda: False,
        may_hash: bool = False,
        is_paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self.limit = limit
        self._may_hash = may_hash
        self.has_stalled = False
        self._ask_far, self._is_suspect, self._is_paused = ask_far, is_suspect, is_paused
        self._pause = min(_SELDOM, max(_OFTEN, limit / 50))
        self._next_look = 0.0
        self._near: Vitals | None = None
        self._near_at = time.monotonic()  # when there was life
        self._forget_far()

    def _forget_far(self) -> None:
        self._far: Vitals | None = None
        self._far_at: float | None = None
        self._next_ask = 0.0

    def heard(self) -> None:
        """Take note that rsync said something."""
        self._near_at = time.monotonic()
        self._forget_far()

    def check(self, pid: int) -> bool:
        """Check a running rsync from time to time; return whether it has stalled."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + self._pause
        near = vitals_below(pid)
        if self._is_paused() or (near is not None and (self._near is None or near.is_life_since(self._near))):
            self._near = near
            self.heard()
            return False
        is_suspect = self._is_suspect()
        limit = min(self.limit, TRAPPED) if is_suspect else self.limit
        if now - self._near_at < limit / _ASKS:
            return False
        far_idle = self._far_idle(limit)
        far_knows = self._far is not None and near is not None
        idle = min(time.monotonic() - self._near_at, far_idle if far_knows else self.limit)
        trusts = far_knows or near is None or self._may_hash
        longest = max(10 * self.limit, ON_ITS_WORD if trusts else UNSEEN)
        enough = limit if far_knows else min(self.limit, UNASKED) if is_suspect else self.limit
        self.has_stalled = (idle >= enough and (far_knows or is_suspect)) or now - self._near_at >= longest
        return self.has_stalled

    def _far_idle(self, limit: float) -> float:
        """Return for how many seconds the peer has shown no life, as far as it was asked within the limit."""
        now = time.monotonic()
        if now >= self._next_ask:
            self._next_ask = now + max(self._pause, limit / _ASKS)
            far = self._ask_far()
            if far is None or self._far is None or far.is_life_since(self._far):
                self._far, self._far_at = far, time.monotonic()
        return time.monotonic() - (self._far_at if self._far_at is not None else now)


def own_vitals(job: int, is_paused: Callable[[], bool]) -> Callable[[int, int], int]:
    """Return the work of a serving end that is asked for the vitals of what its job (a process) runs.

    A run that is paused at this end counts as busy.
    """

    def tell(_stdin: int, stdout: int) -> int:
        found = vitals_below(job)
        os.write(stdout, encode(found._replace(busy=True) if found is not None and is_paused() else found))
        return 0

    tell.looks_around = True  # type: ignore[attr-defined]  # at processes that are confined, each by itself
    return tell
