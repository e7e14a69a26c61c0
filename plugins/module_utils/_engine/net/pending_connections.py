# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pending connections, whose peers are not authenticated: a limited number, and a limited log."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Callable, Collection, Iterator

from ..wire.handshake import HandshakeError
from .authenticate import HANDSHAKE_SECONDS

MOST = 32  # at one time
_COMPLAINTS = 50  # that are logged
_MAPPED = "::ffff:"  # before the IPv4 address of a peer at an IPv6 socket


class Complaints:
    """Log of refused connections, of limited length: anybody can connect as often as they like."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._lock = threading.Lock()
        self.count = 0

    def __call__(self, text: str) -> None:
        """Log a complaint unless there were too many."""
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


class PendingConnection:
    """A connection whose peer is not authenticated yet."""

    __slots__ = ("connection", "is_silent")

    def __init__(self, connection: socket.socket) -> None:
        # A duplicate can be shut down whatever becomes of the object meanwhile: TLS takes its descriptor.
        self.connection = connection.dup()
        self.is_silent = True


class PendingConnections:
    """The pending connections of a listener. If there are too many, the oldest silent one is ended.

    So silent connections cannot keep the peer out, which speaks at once.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: list[PendingConnection] = []  # the oldest first
        self._lock = threading.Lock()

    def add(self, connection: socket.socket) -> PendingConnection:
        """Count a connection from now on; pass the result to ``hold``. Raises OSError.

        The thread that accepts connections calls this in their order: if the thread of each did, an earlier connection
        could be counted after the peer's, which would be ended as the older one.
        """
        entry = PendingConnection(connection)
        with self._lock:
            if len(self._held) >= self._most:
                self._end(next((one for one in self._held if one.is_silent), self._held[0]))
            self._held.append(entry)
        return entry

    @contextlib.contextmanager
    def hold(self, entry: PendingConnection) -> Iterator[None]:
        """Count a connection until the block ends; another thread may end the connection meanwhile."""
        try:
            yield
        finally:
            with self._lock:
                if entry in self._held:
                    self._held.remove(entry)
                    entry.connection.close()

    def end_all(self) -> None:
        """End the connections of all."""
        with self._lock:
            for entry in list(self._held):
                self._end(entry)

    def _end(self, entry: PendingConnection) -> None:
        self._held.remove(entry)
        with contextlib.suppress(OSError):
            entry.connection.shutdown(socket.SHUT_RDWR)
        entry.connection.close()


def admit(
    listening: socket.socket,
    allowed: Collection[str],
    pending: PendingConnections,
    complain: Complaints,
    stop: threading.Event,
) -> Iterator[tuple[socket.socket, PendingConnection]]:
    """Yield each connection of the ``allowed`` addresses (empty: any), counted in ``pending``, until ``stop``.

    The addresses are numeric, and have no zone.
    ``listening`` has a timeout, so that ``stop`` is noticed while no connection comes.
    """
    port = listening.getsockname()[1]
    while not stop.is_set():
        try:
            connection, where = listening.accept()
            address = where[0][len(_MAPPED) :] if where[0].startswith(_MAPPED) else where[0]
            if allowed and address not in allowed:
                complain(f"port {port}: {address} connected, which is not the other host: dropped")
                connection.close()
                continue
            entry = pending.add(connection)
        except socket.timeout:
            continue
        except OSError as error:
            complain(f"port {port}: {error}")
            stop.wait(1)
            continue
        yield connection, entry
