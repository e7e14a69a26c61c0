# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections whose other ends have not proved anything yet: how many there may be, and which one goes."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Iterator

MOST = 32  # at one time


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

    def _end(self, stranger: _Stranger) -> None:
        self._held.remove(stranger)
        with contextlib.suppress(OSError):
            stranger.connection.shutdown(socket.SHUT_RDWR)
        stranger.connection.close()
