# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that makes small files for the one that leads the destination's end. Private to the collection.

Both run the same code in the same Python, and trust each other. They speak over a pair of sockets: a length, then what
``marshal`` makes of a value. Contents are in memory that both see. ``writers`` is the other side.
"""

from __future__ import annotations

import marshal
import mmap
import socket
import struct
import time
from typing import Any

from .._job import lifeline
from .._job.context import Context, TransferFailed
from .._job.outcome import Outcome
from .._tree.entry import Entry
from .._tree.place import Root
from .file_placer import FilePlacer

_LENGTH = struct.Struct("!I")


def send(connection: socket.socket, value: Any) -> None:
    """Send plain data; raises OSError."""
    data = marshal.dumps(value)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> Any:
    """Receive plain data; None where the other process has ended. Raises OSError."""
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


def main(connection_fd: int, memory_fd: int, number: int, leader: int) -> None:
    """Make files until the process ``leader`` ends or says that there are no more."""
    if not lifeline.follow(leader):
        return  # the next run must not meet this process at work
    connection = socket.socket(fileno=connection_fd)
    contents = memoryview(mmap.mmap(memory_fd, 0))
    told = receive(connection)
    if told is None:
        return
    root, settings = told
    context = Context(side="dest", part="", root=root, settings=settings, folder="")
    outcome = Outcome()
    with Root(root) as place:
        placer = FilePlacer(context, place, outcome, process=number)
        try:
            while True:
                piece = receive(connection)
                if piece is None:
                    return
                send(connection, _write(placer, piece, contents))
        except BrokenPipeError:
            return  # the other process has ended, and says why
        finally:
            placer.close()


def _write(placer: FilePlacer, piece: Any, contents: memoryview) -> dict[str, Any]:
    """Make the files of one piece, and give what became of them."""
    number, names, made, offset, files = piece
    before = time.thread_time()
    outcome = placer.outcome
    outcome.files_deleted = outcome.errors_total = 0
    outcome.errors.clear()
    for users, groups in names:
        placer.learn_names(users, groups)
    for folder in made:
        placer.remember(folder)
    failures: dict[int, tuple[int | None, str]] = {}
    fatal = ""
    for index, values, found, size in files:
        try:
            entry = Entry._make(values)
            placer.write_file(entry, found and Entry._make(found), contents[offset : offset + size])
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
        "deleted": outcome.files_deleted,
        "errors": [(error["path"], error["reason"]) for error in outcome.errors],
        "processor": time.thread_time() - before,
    }
