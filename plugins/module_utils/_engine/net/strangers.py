# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections whose other ends have not proved anything yet: how many there may be, which one goes, what is logged."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Callable, Iterator

from ..wire.handshake import HandshakeError
from .authenticate import HANDSHAKE_SECONDS

MOST = 32  # at one time
_COMPLAINTS = 50  # that are logged


class Complaints:
    """Logs what strangers do, but not without end: they decide how often they come."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._lock = threading.Lock()
        self.count = 0

    def __call__(self, text: str) -> None:
        """Log a complaint, if there were not too many."""
        with self._lock:
            self.count += 1
            count = self.count
        if count <= _COMPLAINTS:
            self._log(text if count < _COMPLAINTS else f"{text}; what comes after this is not logged")


def wait_for_words(connection: socket.socket) -> None:
    """Wait until the peer has sent something; raise HandshakeError if it does not in time."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    if not poll.poll(HANDSHAKE_SECONDS * 1000):
        raise HandshakeError("the peer said nothing")


class _Stranger:
    __slots__ = ("connection", "is_silent")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.is_silent = True


class Strangers:
    """Holds the connections of strangers. Where there are too many, the oldest that has said nothing is ended.

    So whoever connects and keeps silent cannot keep the peer out, which speaks at once.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: list[_Stranger] = []  # the oldest first
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def hold(self, connection: socket.socket) -> Iterator[_Stranger]:
        """Count a connection for the time of a block, in which it may be ended by another thread."""
        # A duplicate can be shut down whatever becomes of the object meanwhile: TLS takes its descriptor.
        stranger = _Stranger(connection.dup())
        with self._lock:
            if len(self._held) >= self._most:
                self._end(next((one for one in self._held if one.is_silent), self._held[0]))
            self._held.append(stranger)
        try:
            yield stranger
        finally:
            with self._lock:
                if stranger in self._held:
                    self._held.remove(stranger)
                    stranger.connection.close()

    def end_all(self) -> None:
        """End the connections of all."""
        with self._lock:
            for stranger in list(self._held):
                self._end(stranger)

    def _end(self, stranger: _Stranger) -> None:
        self._held.remove(stranger)
        with contextlib.suppress(OSError):
            stranger.connection.shutdown(socket.SHUT_RDWR)
        stranger.connection.close()
