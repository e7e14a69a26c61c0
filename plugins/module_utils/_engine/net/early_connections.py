# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data connections that the driving end makes before the conversation has begun."""

from __future__ import annotations

import socket
import threading

from ..._core.context import Context
from ..wire.handshake import HandshakeError
from .connect import Connection, ConnectionParameters, introduce, reach
from .tcp_info import is_long

_LONG_LINE_COUNT = 4  # with which a long line is begun


class EarlyConnections:
    """Data connections that are made while the first connection is: on a long line each round trip costs.

    ``count`` are made, and on a long line four if the transfer may have so many: there each begins slowly, and never
    has more under way than its buffer holds. Elsewhere more than there are processors are of no use.
    """

    def __init__(self, context: Context, parameters: ConnectionParameters, count: int) -> None:
        self._peer, self._parameters = context.peer, parameters
        self._most = min(int(context.settings["streams_max"]), _LONG_LINE_COUNT)
        self._lock = threading.Lock()
        self._threads: dict[int, threading.Thread] = {}
        self._made: dict[int, Connection] = {}
        self._is_settled = self._is_over = False
        with self._lock:
            self._begin(count)

    def _begin(self, count: int) -> None:
        for number in range(len(self._threads) + 1, count + 1):
            self._threads[number] = threading.Thread(target=self._make, args=(number,), daemon=True)
            self._threads[number].start()

    def _see_line(self, connection: socket.socket) -> None:
        """Begin more connections if the line is long."""
        if is_long(connection):
            with self._lock:
                if not self._is_settled:
                    self._begin(self._most)

    def settle(self) -> int:
        """Begin no more; return how many are made, or were."""
        with self._lock:
            self._is_settled = True
            return len(self._threads)

    def _make(self, number: int) -> None:
        try:
            reached = reach(str(self._peer["address"]), int(self._peer["port"]))
            if number == 1:
                self._see_line(reached)
            made = introduce(self._parameters, reached, number)
        except (OSError, HandshakeError):  # it is tried again when it is needed
            return
        with self._lock:
            if not self._is_over:
                self._made[number] = made
                return
        made.socket.close()

    def take(self, number: int) -> Connection | None:
        """Wait for a connection and return it; None if it could not be made, or was taken before."""
        thread = self._threads.pop(number, None)
        if thread is None:
            return None
        thread.join()
        with self._lock:
            return self._made.pop(number, None)

    def close(self) -> None:
        """Close those that nobody took."""
        with self._lock:
            self._is_over = True
            left, self._made = list(self._made.values()), {}
        for connection in left:
            connection.socket.close()
