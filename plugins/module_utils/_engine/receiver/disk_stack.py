# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put off what must come last without holding it in memory: a stack in a file.

The metadata of directories is set when all below them is done, deepest first. Directories are met parents first, so
taking them back in the reverse order does it. Eight bytes a directory stay in memory.
"""

from __future__ import annotations

import array
import os
from typing import Iterator


class DiskStack:
    """Records that are read back last one first, in a file in a private folder that goes when this goes."""

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, "spool")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(path, flags, 0o600), "w+b")
        os.unlink(path)
        self._offsets = array.array("Q", [0])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def push(self, record: bytes) -> None:
        """Put a record on top."""
        self._file.write(record)
        self._offsets.append(self._offsets[-1] + len(record))

    def drain(self) -> Iterator[bytes]:
        """Yield all records, the last one first, and forget them."""
        while len(self._offsets) > 1:
            end = self._offsets.pop()
            start = self._offsets[-1]
            self._file.seek(start)
            yield self._file.read(end - start)
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
