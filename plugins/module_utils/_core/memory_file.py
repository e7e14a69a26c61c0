# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file that has no name, in memory where the system can do that: what the kernel moves to and from sockets."""

from __future__ import annotations

import os


class MemoryFile:
    """An open file without a name, which nobody else can open; it lives as long as this object does.

    On Linux it is a memfd; elsewhere a temporary file in ``folder``. Raises OSError.
    """

    def __init__(self, folder: str) -> None:
        self.fd = -1
        if hasattr(os, "memfd_create"):
            self.fd = os.memfd_create("contents")
        else:
            import tempfile

            self.fd, path = tempfile.mkstemp(dir=folder)
            os.unlink(path)

    def write_all(self, data: memoryview) -> None:
        """Append bytes."""
        while data:
            data = data[os.write(self.fd, data) :]

    def read_all(self, size: int) -> bytes:
        """Return the first ``size`` bytes, as many of them as there are."""
        parts: list[bytes] = []
        at = 0
        while at < size:
            part = os.pread(self.fd, size - at, at)
            if not part:
                break
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Free the memory."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self) -> None:
        self.close()
