# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The I/O of one connection: plain, where the kernel moves contents, or TLS."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import sys
import termios
import time
from typing import TYPE_CHECKING, Callable, cast

from ..._core import time_accounting
from ..._core.files import write_all
from ..wire.frames import FrameError
from ..wire.handshake import Keys
from ..wire.records import Heads, Record
from .control_channel import enlarge_pipe

if TYPE_CHECKING:
    from .tls import TlsSocket

BUFFER_BYTES = 1 << 20
TLS_PIECE = 256 << 10  # bytes that OpenSSL is handed at once: more leaves the processor's cache
_HAS_SPLICE = hasattr(os, "splice")  # Python 3.10, Linux
OUTRUN = "a slow data connection was ended: another one has sent what it had under way"

Moved = Callable[[int], None]  # told of so many bytes more


class ConnectionLost(Exception):
    """The connection is of no use any more; what it carried may be sent over another one."""


class DataConnection:
    """A data connection. One thread uses it; ``abort`` may be called by any.

    Waiting inside a record ends after ``timeout`` seconds without a byte; waiting for the next record does not end.
    ``keys`` authenticate each record; None inside TLS (``encrypted``), which does so itself.
    """

    def __init__(
        self, connection: socket.socket, timeout: float, keys: Keys | None, drives: bool, encrypted: bool = False
    ) -> None:
        self._socket, self._timeout = connection, timeout
        self._tls = cast("TlsSocket", connection) if encrypted else None
        self._fd = connection.fileno()
        connection.setblocking(False)
        send = receive = None
        if keys is not None:
            send, receive = (keys.drive, keys.serve) if drives else (keys.serve, keys.drive)
        self._out, self._in = Heads(send), Heads(receive)
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._pipe: tuple[int, int] | None = None
        self._why_aborted = ""
        self.number = 0  # of the connection, as its first bytes said
        self.passed = 0  # bytes that went through it
        self.at_rest = True  # between two records, or ranges: it may have nothing to do
        self.spare = False  # it should end as soon as nothing of its work is under way

    def send_head(self, record: Record) -> None:
        """Send the head of a record; raises ConnectionLost."""
        self.send(memoryview(self._out.encode(record)))

    def send(self, data: memoryview) -> None:
        """Send all of it; raises ConnectionLost."""
        before = time_accounting.switch(time_accounting.SEND) if self._tls else None  # which encrypts inside
        while data:
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                self._wait(select.POLLOUT)
            except (OSError, ValueError) as error:
                raise self._lost("sending", error) from error
            else:
                self.passed += sent
                data = data[sent:]
        if before is not None:
            time_accounting.switch(before)

    def send_file(self, fd: int, offset: int, count: int, moved: Moved) -> None:
        """Send what the file holds there, filled up with zeros where it ends before or cannot be read.

        ``moved`` is told of the bytes as they go. Raises ConnectionLost, and OSError where the file cannot be read;
        all is sent nevertheless, since the peer waits for what was promised.
        """
        left, unreadable = count, None

        def went(size: int) -> None:
            nonlocal left
            left -= size
            moved(size)

        try:
            (self._send_through_buffer if self._tls else self._send_by_kernel)(fd, offset, count, went)
        except OSError as error:
            unreadable = error
        while left:
            piece = self._buffer[: min(left, BUFFER_BYTES)]
            piece[:] = bytes(len(piece))
            self.send(piece)
            went(len(piece))
        if unreadable is not None:
            raise unreadable

    def _send_by_kernel(self, fd: int, offset: int, count: int, moved: Moved) -> None:
        while count:
            try:
                sent = os.sendfile(self._fd, fd, offset, count)
            except BlockingIOError:
                self._wait(select.POLLOUT)
                continue
            except (BrokenPipeError, ConnectionError, TimeoutError) as error:
                raise self._lost("sending", error) from error
            if not sent:
                break
            self.passed += sent
            moved(sent)
            offset, count = offset + sent, count - sent

    def _send_through_buffer(self, fd: int, offset: int, count: int, moved: Moved) -> None:
        while count:
            read = os.preadv(fd, [self._buffer[: min(count, TLS_PIECE)]], offset)
            if not read:
                break
            self.send(self._buffer[:read])
            moved(read)
            offset, count = offset + read, count - read

    def receive_head(self) -> Record:
        """Receive the next head, however long it takes to come; raises ConnectionLost and FrameError."""
        self.at_rest = True
        try:
            return self._in.decode(self.receive(self._in.size, patient=True))
        except FrameError:
            self.abort()
            raise
        finally:
            self.at_rest = False

    def receive(self, count: int, patient: bool = False) -> bytes:
        """Receive so many bytes (at most MAX_RECORD); ``patient``: the first may take its time."""
        data = bytearray(count)
        self._fill(memoryview(data), patient)
        return bytes(data)

    def _fill(self, left: memoryview, patient: bool) -> None:
        before = time_accounting.switch(time_accounting.RECEIVE) if self._tls else None  # which decrypts inside
        while left:
            try:
                if patient and self._tls is not None and not self._tls.pending():
                    # The timeout holds from the first byte on; OpenSSL does not tell of the beginning of a record.
                    self._wait(select.POLLIN, forever=True)
                    patient = False
                got = self._socket.recv_into(left)
            except BlockingIOError:
                self._wait(select.POLLIN, forever=patient)
                continue
            except (OSError, ValueError) as error:
                raise self._lost("receiving", error) from error
            if not got:
                raise self._lost("receiving", "it was closed")
            self.passed += got
            left, patient = left[got:], False
        if before is not None:
            time_accounting.switch(before)

    def receive_file(self, fd: int, offset: int, count: int, moved: Moved) -> None:
        """Write the next bytes to a file; raises ConnectionLost, and OSError where they cannot be written.

        ``moved`` is told of the bytes as they are written.
        """
        if self._tls is None and _HAS_SPLICE:
            self._receive_by_kernel(fd, offset, count, moved)
            return
        while count:
            piece = self._buffer[: min(count, BUFFER_BYTES)]
            self._fill(piece, False)
            write_all(fd, piece, offset)
            moved(len(piece))
            offset, count = offset + len(piece), count - len(piece)

    def _receive_by_kernel(self, fd: int, offset: int, count: int, moved: Moved) -> None:
        if self._pipe is None:
            self._pipe = os.pipe()
            enlarge_pipe(self._pipe[1])
        reader, writer = self._pipe
        while count:
            try:
                held = os.splice(self._fd, writer, min(count, BUFFER_BYTES))
            except BlockingIOError:
                self._wait(select.POLLIN)
                continue
            except (ConnectionError, TimeoutError) as error:
                raise self._lost("receiving", error) from error
            if not held:
                raise self._lost("receiving", "it was closed")
            self.passed += held
            count -= held
            while held:
                written = os.splice(reader, fd, held, offset_dst=offset)
                moved(written)
                offset, held = offset + written, held - written

    def _wait(self, event: int, forever: bool = False) -> None:
        poll = select.poll()
        poll.register(self._fd, event)
        deadline = time.monotonic() + self._timeout
        before = time_accounting.switch(time_accounting.SEND if event == select.POLLOUT else time_accounting.RECEIVE)
        while not poll.poll(500):
            if self._why_aborted:
                raise ConnectionLost(self._why_aborted)
            if not forever and time.monotonic() > deadline:
                raise self._lost("moving data", f"nothing went through for {self._timeout:.0f} seconds")
        time_accounting.switch(before)

    def _lost(self, doing: str, why: object) -> ConnectionLost:
        reason = (why.strerror or str(why)) if isinstance(why, OSError) else str(why)
        self.abort(f"a data connection was lost while {doing}: {reason}")
        return ConnectionLost(self._why_aborted)

    @property
    def socket(self) -> socket.socket:
        """The socket, to ask the system about it."""
        return self._socket

    def held(self) -> int:
        """Return how many bytes the system holds that the peer does not have yet; 0 where it does not say.

        It takes them by the megabyte: what a connection really carries shows without them only.
        """
        try:
            return int.from_bytes(fcntl.ioctl(self.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
        except (OSError, ValueError):  # it was closed meanwhile, or the system has no such question for a socket
            return 0

    def fileno(self) -> int:
        """Return the descriptor; -1 if it was closed."""
        return self._socket.fileno()

    def is_lost(self) -> bool:
        """Return whether the peer, which sends nothing on this connection, hung up."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN | getattr(select, "POLLRDHUP", 0))
        events = poll.poll(0)
        return bool(self._why_aborted) or bool(events and events[0][1] & ~select.POLLIN)

    def abort(self, why: str = "the transfer ended") -> None:
        """Make whoever uses it stop, with ConnectionLost for this reason, or for an earlier one."""
        self._why_aborted = self._why_aborted or why
        with contextlib.suppress(OSError, ValueError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the descriptors; nobody may be using them any more."""
        for fd in self._pipe or ():
            os.close(fd)
        self._pipe = None
        with contextlib.suppress(OSError):
            self._socket.close()
