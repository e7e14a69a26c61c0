# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that makes small files for the one that leads the destination's end.

Both run the same code in the same Python, and trust each other. They speak over a pair of sockets: a length, then what
``marshal`` makes of a value. Contents are in memory that both see. ``writer_pool`` is the other side.
"""

from __future__ import annotations

import marshal
import mmap
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

from ..._core import die_with_parent
from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..._core.outcome import Outcome
from ..._model.entry import Entry
from ..._tree.dirfd import Root
from .apply_file import FileApplier

if TYPE_CHECKING:
    from typing import TypedDict

    class Made(TypedDict):
        """What became of the files of one piece."""

        piece: int
        failures: dict[int, tuple[int | None, str]]  # by index: errno, if there is one, and the reason
        fatal: str  # why there is no point in going on; empty: nothing
        errors: list[tuple[str, str]]  # escaped paths, and reasons
        withheld: dict[str, list[Any]]
        processor: float  # seconds


_LENGTH = struct.Struct("!I")


def send(connection: socket.socket, value: Any) -> None:
    """Send plain data; raises OSError."""
    data = marshal.dumps(value)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> Any:
    """Receive plain data; None if the other process has ended. Raises OSError."""
    head = _read(connection, _LENGTH.size)
    data = _read(connection, *_LENGTH.unpack(head)) if head else None
    return marshal.loads(data) if data else None


def _read(connection: socket.socket, count: int) -> bytearray | None:
    data = bytearray(count)
    room = memoryview(data)
    while room:
        got = connection.recv_into(room)
        if not got:
            return None
        room = room[got:]
    return data


def main(connection_fd: int, memory_fd: int, root_fd: int, staging_fd: int, number: int, leader: int) -> None:
    """Make files until the process ``leader`` ends or says that there are no more."""
    if not die_with_parent.follow(leader):
        return  # the next run must not meet this process at work
    connection = socket.socket(fileno=connection_fd)
    contents = memoryview(mmap.mmap(memory_fd, 0))
    told = receive(connection)
    if told is None:
        return
    root, settings = told
    context = Context(side="dest", part="", root=root, settings=settings, folder="")
    outcome = Outcome()
    with Root(root_fd) as place:
        applier = FileApplier(context, place, outcome, number, staging_fd)
        try:
            while True:
                piece = receive(connection)
                if piece is None:
                    return
                send(connection, _write(applier, piece, contents))
        except BrokenPipeError:
            return  # the other process has ended, and says why
        finally:
            applier.close()


def _write(applier: FileApplier, piece: Any, contents: memoryview) -> Made:
    """Make the files of one piece, and return what became of them."""
    number, learned, made, offset, files = piece
    before = time.thread_time()
    outcome = applier.outcome
    outcome.errors_total = 0
    outcome.errors.clear()
    outcome.withheld.clear()
    for users, groups in learned:
        applier.ids.learn(users, groups)
    for folder in made:
        applier.remember(folder)
    failures: dict[int, tuple[int | None, str]] = {}
    fatal = ""
    for index, values, found, size in files:
        try:
            entry = Entry._make(values)
            applier.write_file(entry, found and Entry._make(found), contents[offset : offset + size])
        except OSError as error:
            failures[index] = (error.errno, error.strerror or str(error))
        except (ValueError, OverflowError) as error:  # a time that this system cannot store
            failures[index] = (None, str(error))
        except TransferFailed as error:
            fatal = str(error)
            break
        offset += size
    return {
        "piece": number,
        "failures": failures,
        "fatal": fatal,
        "errors": [(error["path"], error["reason"]) for error in outcome.errors],
        "withheld": outcome.withheld,
        "processor": time.thread_time() - before,
    }
