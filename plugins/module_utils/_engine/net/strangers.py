# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connections whose other ends have not proved anything yet: how many there may be, which one goes, what is logged."""

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


class Stranger:
    """A connection whose other end has proved nothing yet."""

    __slots__ = ("connection", "is_silent")

    def __init__(self, connection: socket.socket) -> None:
        # A duplicate can be shut down whatever becomes of the object meanwhile: TLS takes its descriptor.
        self.connection = connection.dup()
        self.is_silent = True


class Strangers:
    """Holds the connections of strangers. Where there are too many, the oldest that has said nothing is ended.

    So whoever connects and keeps silent cannot keep the peer out, which speaks at once.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: list[Stranger] = []  # the oldest first
        self._lock = threading.Lock()

    def take(self, connection: socket.socket) -> Stranger:
        """Count a connection from now on; give it to ``hold``.

        Who accepts connections calls this in their order: where the thread of each did, one that came before could be
        counted after the peer's, and end that for an older one. Raises OSError.
        """
        stranger = Stranger(connection)
        with self._lock:
            if len(self._held) >= self._most:
                self._end(next((one for one in self._held if one.is_silent), self._held[0]))
            self._held.append(stranger)
        return stranger

    @contextlib.contextmanager
    def hold(self, stranger: Stranger) -> Iterator[None]:
        """Count a connection until the end of a block, in which it may be ended by another thread."""
        try:
            yield
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

    def _end(self, stranger: Stranger) -> None:
        self._held.remove(stranger)
        with contextlib.suppress(OSError):
            stranger.connection.shutdown(socket.SHUT_RDWR)
        stranger.connection.close()


def admit(
    listening: socket.socket,
    allowed: Collection[str],
    strangers: Strangers,
    complain: Complaints,
    stop: threading.Event,
) -> Iterator[tuple[socket.socket, Stranger]]:
    """Yield each connection of the ``allowed`` addresses (empty: any), counted among ``strangers``, until ``stop``.

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
            stranger = strangers.take(connection)
        except socket.timeout:
            continue
        except OSError as error:
            complain(f"port {port}: {error}")
            stop.wait(1)
            continue
        yield connection, stranger
