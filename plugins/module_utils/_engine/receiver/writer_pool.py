# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Let other processes make small files.

With small files the destination is what all others wait for, and Python runs one thread at a time. So the process that
leads decides and counts, and others beside it make the files. It does its share of that, too, where they are all busy.
"""

from __future__ import annotations

import collections
import contextlib
import mmap
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, NamedTuple, Optional, Tuple

from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..._core.garbage import rest_from_garbage
from ..._model.entry import Entry
from ..._tree.staging import open_staging
from . import writer_process

if TYPE_CHECKING:
    import subprocess

PIECE_BYTES = 1 << 20  # of contents handed over at once
PIECE_FILES = 200
_PIECES = 3  # that may be on their way to one process
MOST = 16  # processes, with the one that leads
WORTH = 1000  # small files that the leading process makes alone: it would take as long to start others

File = Tuple[int, Entry, Optional[Entry], memoryview]  # its index, what is in its place now, its content
Numbers = Tuple[Dict[int, int], Dict[int, int]]  # what users and groups of the source become here


class WriteResult(NamedTuple):
    """What became of a piece: the event that the leading thread gets."""

    key: Any  # as it was given
    indexes: list[int]
    failures: dict[int, tuple[int | None, str]]  # errno and text, by index
    errors: list[tuple[str, str]]  # what could not be kept of files that are in place: path and reason
    processor: float  # seconds that it took
    withheld: dict[str, list[Any]]  # as an outcome has it


def processes_wanted(context: Context) -> int:
    """Return the number of writer processes: with the leading process as many as the transfer has streams."""
    streams = int(context.settings["streams"]) if sys.platform == "linux" else 1  # elsewhere nothing shares memory so
    return min(streams, MOST) - 1


class WriterPool:
    """``count`` processes, started when there is enough for them to do.

    ``put`` takes events from any thread: ``WriteResult``, or an exception.
    """

    def __init__(self, context: Context, put: Callable[[Any], None], count: int) -> None:
        self._context, self._put = context, put
        self._wanted = count
        self._writers: list[_Writer] = []
        self._seen = 0
        self._learned: list[Numbers] = []

    def expect(self, count: int) -> None:
        """So many small files more will have to be made."""
        self._seen += count
        if self._seen >= WORTH and self._wanted:
            self._start()

    def _start(self) -> None:
        wanted, self._wanted = self._wanted, 0  # once
        try:
            for number in range(1, wanted + 1):
                writer = _Writer(self._context, number, self._put)
                self._writers.append(writer)
                writer.learn(self._learned)
        except OSError as error:
            self._context.log(f"a process to write small files could not be started: {error}")
        self._context.log(f"{self.count} processes write small files beside the one that leads")

    def learn_ids(self, users: Mapping[int, int], groups: Mapping[int, int]) -> None:
        """Take what more ids of the source become here, before the entries that have them."""
        learned = (dict(users), dict(groups))
        self._learned.append(learned)
        for writer in self._writers:
            writer.learn([learned])

    def give(self, key: Any, files: list[File], made: list[bytes]) -> bool:
        """Hand over files; false where all are busy. ``made``: directories that this run made.

        A piece has at most PIECE_BYTES of contents, which nobody needs any more afterwards. Raises TransferFailed.
        """
        writer = max(self._writers, key=_Writer.room, default=None)
        if writer is None or not writer.room():
            return False
        writer.give(key, files, made)
        return True

    @property
    def count(self) -> int:
        """Processes that were started."""
        return len(self._writers)

    def close(self) -> None:
        """End all of them; what they have begun is done before."""
        self._wanted = 0
        for writer in self._writers:
            writer.finish()
        for writer in self._writers:
            writer.close()


class _Writer:
    """One process, and what is on its way to it."""

    def __init__(self, context: Context, number: int, put: Callable[[Any], None]) -> None:
        self._put = put
        self._free = collections.deque(range(_PIECES))
        self._under_way: dict[int, tuple[Any, list[int]]] = {}
        self._learned: list[Numbers] = []
        self._is_over = False
        memory = os.memfd_create("contents", os.MFD_CLOEXEC)
        self._connection, theirs = socket.socketpair()
        try:
            os.ftruncate(memory, _PIECES * PIECE_BYTES)
            self._memory = mmap.mmap(memory, 0)
            staged = open_staging(context)
            self._process = _start(theirs.fileno(), memory, staged.root_fd, staged.temporary_fd, number)
        except OSError:
            self._connection.close()
            raise
        finally:
            theirs.close()
            os.close(memory)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self._send((context.root, {name: context.settings.get(name) for name in _SETTINGS}))

    def room(self) -> int:
        """How many pieces more it can take."""
        return len(self._free)

    def learn(self, learned: list[Numbers]) -> None:
        """Take what ids become here, which goes with the next piece."""
        self._learned += learned

    def give(self, key: Any, files: list[File], made: list[bytes]) -> None:
        """Hand over a piece; raises TransferFailed."""
        slot = self._free.popleft()
        start = offset = slot * PIECE_BYTES
        told = []
        for index, entry, found, content in files:
            size = len(content)
            self._memory[offset : offset + size] = content
            offset += size
            told.append((index, tuple(entry), found and tuple(found), size))
        self._under_way[slot] = (key, [file[0] for file in files])
        learned, self._learned = self._learned, []
        self._send((slot, learned, made, start, told))

    def _send(self, value: Any) -> None:
        try:
            writer_process.send(self._connection, value)
        except OSError as error:
            raise self._gone() from error

    def _listen(self) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                said = writer_process.receive(self._connection)
                while said is not None:
                    self._heard(said)
                    said = writer_process.receive(self._connection)
            if not self._is_over:
                raise self._gone()
        except (OSError, TransferFailed) as error:
            self._put(error)

    def _heard(self, said: writer_process.Made) -> None:
        if said["fatal"]:
            raise TransferFailed(said["fatal"])
        key, indexes = self._under_way.pop(said["piece"])
        self._put(WriteResult(key, indexes, said["failures"], said["errors"], said["processor"], said["withheld"]))
        self._free.append(said["piece"])

    @staticmethod
    def _gone() -> TransferFailed:
        return TransferFailed(
            "a process that writes small files at the destination ended: it was killed, or its last words are in the "
            "job's log. What is in place stays: run the task again to resume"
        )

    def finish(self) -> None:
        """Signal the end of the work."""
        self._is_over = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Wait for its end, and give everything back."""
        self._thread.join()
        self._process.wait()
        self._connection.close()
        self._memory.close()


_SETTINGS = ("id", "trust", "check", "preserve", "numeric_ids", "owner_map", "inplace")  # that a FileApplier looks at


def _start(connection: int, memory: int, root: int, staging: int, number: int) -> subprocess.Popen[bytes]:
    """Start the other process with the code that this one runs, from wherever that comes. Raises OSError."""
    import subprocess  # which most transfers do without

    from ..._core import subprocesses

    package, _dot, _own = __name__.rpartition(".")
    garbage = rest_from_garbage.__module__
    place = __file__[: __file__.rindex(__name__.replace(".", os.sep))]
    code = (
        f"import sys; sys.path.insert(0, {place.rstrip(os.sep)!r}); "
        f"from {garbage} import rest_from_garbage; rest_from_garbage(); "
        f"from {package}.writer_process import main; "
        f"main({connection}, {memory}, {root}, {staging}, {number}, {os.getpid()})"
    )
    return subprocesses.start(
        [sys.executable, "-I", "-S", "-B", "-c", code],
        stdout=subprocess.DEVNULL,
        pass_fds=(connection, memory, root, staging),
    )
