# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conversation inside TLS."""

from __future__ import annotations

import contextlib
import ssl
import threading

from .control_channel import Channel
from .data_connection import TLS_PIECE

_NOT_NOW = (ssl.SSLWantReadError, ssl.SSLWantWriteError)  # what a connection that does not wait says where it would
_RECORDS = 16  # taken from OpenSSL at once


class TlsChannel(Channel):
    """The conversation inside TLS. OpenSSL lets only one thread at a time use a connection, hence the lock."""

    checks = False  # TLS authenticates every byte

    def __init__(self, connection: ssl.SSLSocket, timeout: float) -> None:
        connection.setblocking(False)
        self._tls, self._using = connection, threading.Lock()
        super().__init__(connection.fileno(), connection.fileno(), timeout)

    def _write_some(self, parts: list[memoryview]) -> int:
        pieces, left = [], TLS_PIECE
        for part in parts:
            pieces.append(part[:left])
            left -= len(pieces[-1])
            if not left:
                break
        try:
            with self._using:
                return int(self._tls.send(b"".join(pieces) if len(pieces) > 1 else pieces[0]))
        except _NOT_NOW:
            raise BlockingIOError from None

    def _read_some(self, room: memoryview) -> int:
        """A record of TLS holds 16 KiB at most: take several at once."""
        count = 0
        with self._using:
            try:
                for _record in range(_RECORDS):
                    got = self._tls.recv_into(room[count:])
                    count += got
                    if not got or count == len(room):
                        break  # the end shows again at the next call
            except _NOT_NOW:
                if not count:
                    raise BlockingIOError from None
        return count

    def close(self) -> None:
        """Close the connection; nobody may be sending or receiving any more."""
        self.abort("it was closed")
        self._closed = True
        with contextlib.suppress(OSError):
            self._tls.close()
