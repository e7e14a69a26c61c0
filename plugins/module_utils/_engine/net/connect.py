# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connect the two ends: one port, numbered connections, each end proves who it is."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, cast

from ..._core.context import Context
from ..._core.errors import PeerUnreachable, TransferFailed
from ..._core.host_name import bind_target, plain
from ..wire import handshake
from ..wire.handshake import HandshakeError, Keys
from . import authenticate
from .authenticate import HANDSHAKE_SECONDS, read_exactly
from .control_channel import Channel
from .data_connection import DataConnection
from .pending_connections import Complaints, PendingConnection, PendingConnections, admit, wait_for_words
from .tcp_info import is_long

if TYPE_CHECKING:
    from .tls import TlsSocket

FIRST_SECONDS = 30.0  # until the serving end must have taken the first connection
_RETRY_SECONDS = 0.2
_AGAIN_SECONDS = 0.5
_REFUSALS = 4  # in a row; then nobody listens there, or no more
_WINDOW = 4 << 20  # bytes: what 100 ms carry at 300 Mbit/s
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))


class Connection(NamedTuple):
    """A connection whose other end has proved who it is."""

    number: int
    socket: socket.socket
    keys: Keys  # of no use inside TLS, which authenticates every byte
    encrypted: bool = False  # then the socket is a TlsSocket

    def channel(self, timeout: float, drives: bool) -> Channel:
        """Make it carry the conversation."""
        if self.encrypted:
            from .tls import TlsChannel

            return TlsChannel(cast("TlsSocket", self.socket), timeout)
        fd = self.socket.detach()
        send, receive = (self.keys.drive, self.keys.serve) if drives else (self.keys.serve, self.keys.drive)
        return Channel(fd, fd, timeout, send_key=send, receive_key=receive)

    def link(self, timeout: float, drives: bool) -> DataConnection:
        """Make it carry contents."""
        link = DataConnection(self.socket, timeout, None if self.encrypted else self.keys, drives, self.encrypted)
        link.number = self.number
        return link


class ConnectionParameters:
    """What both ends of a transfer need to make connections, read from the context once."""

    def __init__(self, context: Context, encrypts: bool = True) -> None:
        self.secret = context.secrets.get("exchange", "")
        if not self.secret:
            raise TransferFailed("the transfer was given no one-time secret, without which anybody could connect")
        self.encrypts = encrypts and context.settings.get("encrypt") is not False  # whatever else it is
        self._wrap = _tls(context) if self.encrypts else None
        self.drives = context.part == "drive"
        self.timeout = float(context.settings["timeout"] or 300)

    def wrap(self, connection: socket.socket) -> socket.socket:
        """Prepare a new connection, and put TLS around it if the transfer is encrypted."""
        connection.settimeout(HANDSHAKE_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            with contextlib.suppress(AttributeError, OSError):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if is_long(connection):  # elsewhere more room only leaves the processor's cache
            open_window(connection)
        return connection if self._wrap is None else self._wrap(connection)


def _tls(context: Context) -> Callable[[socket.socket], socket.socket]:
    """Return what puts TLS around a connection. Loads OpenSSL, which a plain transfer does not wait for."""
    from . import tls

    return partial(tls.wrap, tls.make(context), context.secrets[tls.PEER], context.part != "drive")


def open_window(connection: socket.socket) -> None:
    """Let the peer send as fast as its own beginning allows, from the first round trip on; only Linux can.

    It makes room for what it sees arrive, a round trip late: at 100 ms that costs two of the first ten. To ask for a
    large lower limit makes the room at once (tcp_set_rcvlowat, Linux 4.18), and leaves it free to grow; a buffer that
    is set by SO_RCVBUF would never grow again.
    """
    with contextlib.suppress(OSError):
        for least in (_WINDOW, 1):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)


def connect(
    parameters: ConnectionParameters, address: str, port: int, number: int, seconds: float = HANDSHAKE_SECONDS
) -> Connection:
    """Make one connection, within so many seconds; raises OSError or HandshakeError."""
    return introduce(parameters, reach(address, port, seconds), number)


def reach(address: str, port: int, seconds: float = HANDSHAKE_SECONDS) -> socket.socket:
    """Open a TCP connection. Raises OSError."""
    return socket.create_connection((plain(address), port), timeout=seconds)


def introduce(parameters: ConnectionParameters, connection: socket.socket, number: int) -> Connection:
    """Have both ends of a connection prove who they are; raises OSError or HandshakeError, and closes it then."""
    try:
        deadline = time.monotonic() + HANDSHAKE_SECONDS
        connection = parameters.wrap(connection)
        read, send = partial(_read_until, connection, deadline), connection.sendall
        keys = authenticate.drive(parameters.secret, number, read, send, handshake.encode_hello(number))
    except BaseException:
        connection.close()
        raise
    return Connection(number, connection, keys, parameters.encrypts)


def _read_until(connection: socket.socket, deadline: float, count: int) -> bytes:
    """Return ``count`` bytes; raise HandshakeError or OSError at the end of the whole handshake's time.

    A peer that sends a byte now and then holds a place no longer than one that is silent.
    """

    def receive(most: int) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0:
            raise HandshakeError("the peer took too long to prove who it is")
        connection.settimeout(left)
        return connection.recv(most)

    return read_exactly(receive, count)


def connect_first(context: Context, parameters: ConnectionParameters) -> Connection:
    """Make the connection that carries the conversation, which may take a while; raises PeerUnreachable.

    The peer listens before this end begins, so who refuses is something between them, and will go on refusing.
    """
    address, port = str(context.peer["address"]), int(context.peer["port"])
    patience = float(context.peer.get("patience") or FIRST_SECONDS)
    deadline, refused = time.monotonic() + patience, 0
    while True:
        try:
            return connect(parameters, address, port, handshake.CONTROL, min(patience, HANDSHAKE_SECONDS))
        except (OSError, HandshakeError) as error:
            refused = refused + 1 if isinstance(error, ConnectionRefusedError) else 0
            if context.stop.is_set() or time.monotonic() > deadline or refused >= _REFUSALS:
                raise PeerUnreachable(
                    f"{address} did not take the connection to port {port}: {error}. Open the port in the firewalls "
                    "between the two hosts, name an open one with port or port_range, or let that host connect "
                    "(connect: pull or push)"
                ) from error
        time.sleep(_RETRY_SECONDS)


def connect_again(
    context: Context, parameters: ConnectionParameters, seconds: float, lost: TransferFailed
) -> Connection:
    """Reconnect after the connection was lost; raise ``lost`` if that fails until the timeout.

    If nothing listens at the port any more, the peer is gone, and waiting is pointless.
    """
    address, port = str(context.peer["address"]), int(context.peer["port"])
    deadline, refused = time.monotonic() + seconds, 0
    while not context.stop.is_set() and time.monotonic() < deadline and refused < _REFUSALS:
        try:
            return connect(parameters, address, port, handshake.CONTROL)
        except ConnectionRefusedError:
            refused += 1
        except (OSError, HandshakeError) as error:
            context.log(f"not connected again yet: {error}")
        context.stop.wait(_AGAIN_SECONDS)
    raise lost


class Listener:
    """Listens at one port, and hands on every connection whose other end proves who it is."""

    def __init__(
        self, context: Context, parameters: ConnectionParameters, arrived: Callable[[Connection], None]
    ) -> None:
        self._parameters, self._arrived, self._log = parameters, arrived, context.log
        self._allowed = [str(address).partition("%")[0] for address in context.serve.get("allow") or ()]
        self._stop = threading.Event()
        self._pending = PendingConnections()
        self.complaints = Complaints(context.log)
        self._socket = _listen(str(context.serve.get("address") or ""), list(context.serve.get("ports") or ()))
        self.address, self.port = self._socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for met in admit(self._socket, self._allowed, self._pending, self.complaints, self._stop):
            threading.Thread(target=self._authenticate, args=met, daemon=True).start()

    def _authenticate(self, connection: socket.socket, pending: PendingConnection) -> None:
        """Find out who connected, for a few seconds at most."""
        try:
            with self._pending.hold(pending):
                wait_for_words(connection)
                pending.is_silent = False
                deadline = time.monotonic() + HANDSHAKE_SECONDS
                raw, connection = connection, self._parameters.wrap(connection)
                encrypted = connection is not raw
                read = partial(_read_until, connection, deadline)
                number = handshake.decode_hello(read(handshake.HELLO_BYTES))
                keys = authenticate.serve(self._parameters.secret, number, read, connection.sendall)
        except (OSError, HandshakeError) as error:
            if not self._stop.is_set():
                self.complaints(f"port {self.port}: {error}; listening on")
            connection.close()
            return
        self._arrived(Connection(number, connection, keys, encrypted))

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._thread.join()
        self._socket.close()


def _listen(address: str, ports: list[Any]) -> socket.socket:
    """Listen at the first of the ports that is free, or at any; raises TransferFailed."""
    if not address:
        address = "0.0.0.0"
    trouble: OSError | None = None
    for port in ports or [0]:
        listening = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(bind_target(address, int(port)))
            listening.listen(handshake.MAX_STREAMS)
            listening.settimeout(0.2)
            return listening
        except OSError as error:
            listening.close()
            trouble = error
    named = f"port {ports[0]}" if len(ports) == 1 else f"any port from {ports[0]} to {ports[-1]}" if ports else "a port"
    reason = os.strerror(trouble.errno) if trouble is not None and trouble.errno else str(trouble)
    raise TransferFailed(
        f"this host cannot listen at {named} of {address} ({reason}). Name another port or a wider port_range; where "
        "the address is not its own, set longhaul_address to one at which the other host reaches it"
    )
