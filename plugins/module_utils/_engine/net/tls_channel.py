# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conversation inside TLS."""

from __future__ import annotations

import contextlib
import select
import threading

from .control_channel import Channel
from .tls import PIECE_BYTES, TlsConnection


class TlsChannel(Channel):
    """The conversation inside TLS. OpenSSL lets only one thread at a time use a connection, hence the lock."""

    checks = False  # TLS authenticates every byte

    def __init__(self, connection: TlsConnection, timeout: float) -> None:
        self._tls, self._using = connection, threading.Lock()
        super().__init__(connection.fileno(), connection.fileno(), timeout)
        connection.socket.settimeout(0.0)

    def _write_some(self, parts: list[memoryview]) -> int:
        pieces, left = [], PIECE_BYTES
        for part in parts:
            pieces.append(part[:left])
            left -= len(pieces[-1])
            if not left:
                break
        with self._using:
            return self._tls.send(b"".join(pieces) if len(pieces) > 1 else pieces[0])

    def _read_some(self, room: memoryview) -> int:
        with self._using:
            return self._tls.recv_into(room)

    def _wait(self, fd: int, event: int) -> bool:
        """Do not wait for what has come: OpenSSL may hold more than was asked for."""
        with self._using:
            is_ready = event == select.POLLIN and self._tls.is_ready
        return is_ready or super()._wait(fd, event)

    def close(self) -> None:
        """Close the connection; nobody may be sending or receiving any more."""
        self.abort("it was closed")
        self._closed = True
        with contextlib.suppress(OSError):
            self._tls.close()
