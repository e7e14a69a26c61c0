# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log of a transfer's daemon: read as it comes, so that it takes no space, however much clients cause."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import select
import threading

_KEPT = 20  # lines
_LONGEST = 4096  # bytes of a line that are looked at
_LOOK = 200  # milliseconds
# "2026/11/24 23:04:46 [24539] rsync to longhaul/ from user@host (address)": said after the password was right
_LOGIN = re.compile(rb"\S+ \S+ \[(\d+)\] rsync (?:to|on) ")


class DaemonLog:
    """A named pipe that rsync takes for its log file."""

    def __init__(self, path: str) -> None:
        self.path = path
        with contextlib.suppress(FileNotFoundError):  # of a job that was killed with its guard
            os.unlink(path)
        os.mkfifo(path, 0o600)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # so it is open whoever else has it
        self._lines: collections.deque[bytes] = collections.deque(maxlen=_KEPT)
        self._logged_in: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        poll, rest = select.poll(), b""
        poll.register(self._fd, select.POLLIN)
        while poll.poll(_LOOK) or not self._stop.is_set():
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                continue
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:_LONGEST]
            for line in lines:
                found = _LOGIN.match(line)
                if found:
                    self._logged_in.add(int(found.group(1)))
                self._lines.append(line[:_LONGEST])

    def has_logged_in(self, pid: int) -> bool:
        """Return whether a process of the daemon has said that its client logged in."""
        return pid in self._logged_in

    def forget(self, pid: int) -> None:
        """Take note that a process is over: its number may be given to another."""
        self._logged_in.discard(pid)

    def text(self) -> str:
        """Return the last lines."""
        return b"\n".join(list(self._lines)).decode(errors="replace")

    def close(self) -> None:
        """Read what is there, and remove the pipe."""
        self._stop.set()
        self._thread.join()
        os.close(self._fd)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
