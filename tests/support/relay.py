# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A relay between two ends on this machine, whose connections can be cut, or carry only so much each."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import threading
import time

from .faults import wait_for

_BUFFER = 128 << 10  # bytes that a slow connection may hold
_KEPT = 4 << 20  # bytes
_LATE = 0.05  # seconds: a thread that slept longer than it was to makes up for it


class _Pace:
    """Lets so many bytes through in a second, in whichever threads; 0: all."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._free = 0.0  # when the next bytes may go
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """Wait until so many bytes may have gone."""
        if self._rate:
            with self._lock:
                self._free = free = max(self._free, time.monotonic() - _LATE) + count / self._rate
            time.sleep(max(0.0, free - time.monotonic()))


class Relay:
    """Hands every connection on to another local port; a context manager.

    ``rate``: bytes a second that each connection carries in each direction, as on a long line; 0: what it can. With
    ``shared`` all of them together carry no more, as on a short one.
    """

    def __init__(self, target: int, rate: int = 0, shared: bool = False) -> None:
        self._target, self._rate = target, rate
        self._line = _Pace(rate) if shared else None
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._limit_buffer(self._listening)  # which those that it accepts inherit
        self._listening.settimeout(0.1)
        self.port = int(self._listening.getsockname()[1])
        self.cuts = 0
        self.passed = 0  # bytes, in both directions
        self.most = 0  # connections that there were at one time
        self._open: set[tuple[socket.socket, socket.socket]] = set()
        self.said: list[bytearray] = []  # by connection: the beginning of what came from who connected
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self._thread.join()
        self._listening.close()
        for pair in self._pairs:
            self._cut(pair)

    @property
    def open(self) -> int:
        """How many connections there are at this moment."""
        return len(self._open)

    def wait(self, size: int) -> None:
        """Wait until so many bytes have passed since the beginning."""
        wait_for(lambda: self.passed >= size, seconds=60)

    def cut_newest(self) -> None:
        """Cut the connection that was made last, unless it is the first of all."""
        if len(self._pairs) > 1:
            self._cut(self._pairs.pop())
            self.cuts += 1

    def reset_newest(self) -> None:
        """Reset the connection that was made last, unless it is the first of all: both ends get an error."""
        if len(self._pairs) > 1:
            for end in self._pairs.pop():
                _reset(end)
            self.cuts += 1

    def cut_all(self) -> None:
        """Cut every connection, the first one too."""
        while self._pairs:
            self._cut(self._pairs.pop())
            self.cuts += 1

    @staticmethod
    def _cut(pair: tuple[socket.socket, socket.socket]) -> None:
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                here, _where = self._listening.accept()
            except socket.timeout:
                continue
            there = socket.socket()
            self._limit_buffer(there)
            there.connect(("127.0.0.1", self._target))
            pair = (here, there)
            self._pairs.append(pair)
            self._open.add(pair)
            self.most = max(self.most, self.open)
            self.said.append(bytearray())
            for reader, writer, said in ((here, there, self.said[-1]), (there, here, bytearray())):
                threading.Thread(target=self._copy, args=(pair, reader, writer, said), daemon=True).start()

    def _limit_buffer(self, end: socket.socket) -> None:
        if self._rate:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)

    def _copy(
        self, pair: tuple[socket.socket, socket.socket], reader: socket.socket, writer: socket.socket, said: bytearray
    ) -> None:
        pace = self._line or _Pace(self._rate)
        with contextlib.suppress(OSError):
            while True:
                data = reader.recv(65536)
                if not data:
                    break
                pace.take(len(data))
                if len(said) < _KEPT:
                    said += data
                writer.sendall(data)
                self.passed += len(data)
        self._open.discard(pair)
        with contextlib.suppress(OSError):
            writer.shutdown(socket.SHUT_WR)


def _reset(connection: socket.socket) -> None:
    """Let the kernel drop a connection, whoever waits for it: connecting to no address at all does that."""
    nowhere = struct.pack("H14x", socket.AF_UNSPEC)
    ctypes.CDLL(None).connect(connection.fileno(), nowhere, len(nowhere))
