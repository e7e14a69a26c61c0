# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep what must wait without holding it in memory: a stack in a file, and records by their place in a file.

The metadata of directories is set when all below them is done, deepest first. Directories are met parents first, so
taking them back in the reverse order does it. Eight bytes a directory stay in memory.
"""

from __future__ import annotations

import array
import contextlib
import io
import os
import struct
from typing import BinaryIO, Iterator, cast

_LENGTH = struct.Struct("<I")
_IN_MEMORY = 8 << 20  # bytes of records: most trees have fewer


def _open_private(folder: str) -> BinaryIO:
    """Open a new file in a private folder, without a name, so that it goes when it is closed."""
    path = os.path.join(folder, "spool")
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags, 0o600), "w+b")
    os.unlink(path)
    return cast("BinaryIO", file)


@contextlib.contextmanager
def _naming(folder: str) -> Iterator[None]:
    """Have an error of a file without a name tell the folder that it was made in."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, folder) from error


class DiskStack:
    """Records that are read back last one first, in a file in a private folder that goes when this goes."""

    def __init__(self, folder: str) -> None:
        self._folder, self._file = folder, _open_private(folder)
        self._offsets = array.array("Q", [0])

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def push(self, record: bytes) -> None:
        """Put a record on top. Raises OSError, which names the folder, if the disk takes no more."""
        with _naming(self._folder):
            self._file.write(record)
        self._offsets.append(self._offsets[-1] + len(record))

    def drain(self) -> Iterator[bytes]:
        """Yield all records, the last one first, and forget them."""
        while len(self._offsets) > 1:
            end = self._offsets.pop()
            start = self._offsets[-1]
            with _naming(self._folder):
                self._file.seek(start)
                record = self._file.read(end - start)
            yield record
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        """Close the file; nobody reads any more what it has not taken."""
        with contextlib.suppress(OSError):
            self._file.close()


class RecordFile:
    """Records that are read by their places: in memory as long as they are few, then in a file in a private folder."""

    def __init__(self, folder: str, in_memory: int = _IN_MEMORY) -> None:
        self._folder, self._in_memory = folder, in_memory
        self._file: BinaryIO = io.BytesIO()
        self._end = 0
        self._is_on_disk = False

    def put(self, record: bytes) -> int:
        """Keep a record and return its place. Raises OSError, which names the folder, if the disk takes no more."""
        place = self._end
        with _naming(self._folder):
            if not self._is_on_disk and place + len(record) > self._in_memory:
                self._move_to_disk()
            self._file.seek(place)
            self._file.write(_LENGTH.pack(len(record)) + record)
            self._end = self._file.tell()
        return place

    def get(self, place: int) -> bytes:
        """Return the record at a place. Raises OSError as ``put`` does."""
        with _naming(self._folder):
            self._file.seek(place)
            return self._file.read(*_LENGTH.unpack(self._file.read(_LENGTH.size)))

    def _move_to_disk(self) -> None:
        file = _open_private(self._folder)
        self._file.seek(0)
        file.write(self._file.read())
        self._file.close()
        self._file, self._is_on_disk = file, True

    def clear(self) -> None:
        """Forget all records; nobody asks for one any more."""
        self._file.seek(0)
        self._file.truncate()
        self._end = 0

    def close(self) -> None:
        """Close the file; nobody reads any more what it has not taken."""
        with contextlib.suppress(OSError):
            self._file.close()
