# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Open new ssh connections to a host no faster than its sshd takes them, from all workers of a run together.

An sshd refuses connections at random when ten of them have not logged in yet (MaxStartups), and may then refuse their
address for a while (PerSourcePenalties). Many pairs with one source would meet that. A master that Ansible keeps open
(ControlPersist) carries ten sessions at a time (MaxSessions); ssh opens a connection of its own for each beyond.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator

OPENINGS, WINDOW = 5, 1.0  # connections to a host that are opened at most in so many seconds
SESSIONS = 8  # that a master carries for the collection; the user's own tasks have the other two
_LOOK = 0.05  # seconds until a master is looked for again


class Pace:
    """The pace of one host; ``folder`` is shared by all workers of a run."""

    def __init__(self, folder: str, host: str) -> None:
        self._path = os.path.join(folder, f"longhaul-{hashlib.sha256(host.encode()).hexdigest()[:16]}")

    @contextlib.contextmanager
    def turn(self, has_master: Callable[[], bool]) -> Iterator[None]:
        """Wait until an execution may begin, and count it while it lasts.

        ``has_master`` tells whether an open connection would carry it. Where nothing can be written here, nobody waits.
        """
        session = -1
        try:
            with contextlib.suppress(OSError):
                while True:
                    session = self._session() if has_master() else -1
                    if session >= 0 or self._opens():
                        break
                    time.sleep(_LOOK)
            yield
        finally:
            if session >= 0:
                os.close(session)

    def _session(self) -> int:
        """Take one of the sessions of the master and return its lock; -1 if all are taken."""
        for number in range(SESSIONS):
            lock = os.open(f"{self._path}.{number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
            else:
                return lock
        return -1

    def _opens(self) -> bool:
        """Note that a connection is opened now, unless too many were a moment ago."""
        with open(os.open(f"{self._path}.opened", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            now = time.monotonic()  # in the lock: what others noted while this one waited for it counts, too
            recent = [one for one in _times(file.read()) if now - WINDOW < one <= now]
            if len(recent) >= OPENINGS:
                return False
            file.seek(0)
            file.truncate()
            json.dump([*recent, now], file)
        return True


def _times(text: str) -> list[float]:
    try:
        return [float(one) for one in json.loads(text or "[]")]
    except (TypeError, ValueError):
        return []
