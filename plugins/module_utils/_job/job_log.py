# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a job logs, which never takes more than a certain space. Private to the collection.

Strangers and a hostile peer decide how often they do what is logged. So the oldest lines go where there are too many.
"""

from __future__ import annotations

import os
import threading

MOST_BYTES = 1 << 20
KEPT_BYTES = 256 << 10  # of the newest, where there are more
_LINE = 4000  # characters of one entry


class JobLog:
    """Appends to the log of a job, which the job has open as ``fd`` under the name ``path``; for any thread."""

    def __init__(self, path: str, fd: int) -> None:
        self._path, self._fd = path, fd
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        """Log a text."""
        line = text if len(text) <= _LINE else f"{text[:_LINE]} ..."
        with self._lock:
            os.write(self._fd, (line + "\n").encode(errors="surrogateescape"))
            if os.fstat(self._fd).st_size > MOST_BYTES:
                self._shorten()

    def _shorten(self) -> None:
        with open(self._path, "rb") as stream:
            stream.seek(-KEPT_BYTES, os.SEEK_END)
            stream.readline()  # the rest of a line
            kept = stream.read()
        os.ftruncate(self._fd, 0)  # it is open for appending
        os.write(self._fd, b"(earlier lines are gone)\n" + kept)
