# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TLS between the two ends of one transfer: 1.3 only, each end trusts one certificate.

The certificates are made for this transfer on the control node. The key reaches OpenSSL through a path that is on no
disk (``Context.secret_file``).
"""

from __future__ import annotations

import contextlib
import hmac
import os
import select
import socket
import ssl
import threading
import time
from typing import cast

from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..wire.frames import Payload
from ..wire.handshake import HandshakeError
from .control_channel import Channel
from .data_connection import TLS_PIECE

CERTIFICATE, KEY, PEER = "tls_certificate", "tls_key", "tls_peer"  # names of the secrets, PEM texts


def make(context: Context) -> ssl.SSLContext:
    """Make this end's TLS context; raise TransferFailed if a secret is missing or no PEM text."""
    for name in (CERTIFICATE, KEY, PEER):
        if not context.secrets.get(name):
            raise TransferFailed(f"the transfer must be encrypted, but there is no {name}")
    serves = context.part == "serve"
    engine = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serves else ssl.PROTOCOL_TLS_CLIENT)
    if not ssl.HAS_TLSv1_3:
        raise TransferFailed("the Python of this host has no TLS 1.3: use another method, or encryption: none")
    engine.minimum_version = ssl.TLSVersion.TLSv1_3
    engine.check_hostname = False  # the certificate itself is known
    engine.verify_mode = ssl.CERT_REQUIRED
    path = context.secret_file(context.secrets[CERTIFICATE] + context.secrets[KEY], "certificate")
    try:
        engine.load_cert_chain(path)
        engine.load_verify_locations(cadata=context.secrets[PEER])
    except (ssl.SSLError, ValueError, OSError) as error:
        raise TransferFailed(f"the certificates of this transfer cannot be used: {error}") from error
    finally:
        _forget(path)
    if serves:
        engine.num_tickets = 0  # no session is ever resumed
    return engine


def _forget(path: str) -> None:
    """Let go of the key's text, now that OpenSSL has it."""
    prefix = f"/proc/{os.getpid()}/fd/"
    if path.startswith(prefix):
        os.close(int(path[len(prefix) :]))
    else:
        os.unlink(path)


class TlsConnection:
    """TLS over a TCP connection that it owns, in pieces of ``TLS_PIECE``.

    OpenSSL works on memory and this moves the records: an ``ssl.SSLSocket`` makes a system call for each record of
    16 KiB that it sends, and two for each that it receives. One thread at a time uses it. Until ``stop_waiting`` all
    that is received together may take as long as the timeout of the connection says.
    """

    def __init__(self, engine: ssl.SSLContext, serves: bool, connection: socket.socket) -> None:
        """Take a connection, and agree on keys with the peer. Raises OSError."""
        self.socket = connection
        self._arrived, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = engine.wrap_bio(self._arrived, self._leaving, server_side=serves)
        self._room = memoryview(bytearray(TLS_PIECE))
        self._unsent = memoryview(b"")  # records that are still to be sent
        self._taken = 0  # bytes of contents that these and the ones before stand for
        self._has_ended = False
        patience = connection.gettimeout()
        self._until = None if patience is None else time.monotonic() + patience  # for all that is received
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    self._flush()  # the alert, which tells the peer why
                raise
            else:
                break
        self._flush()

    @property
    def certificate(self) -> bytes | None:
        """The certificate that the peer has shown, DER."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def is_ready(self) -> bool:
        """Whether there may be something to receive without a look at the network."""
        return bool(self._tls.pending() or self._arrived.pending or self._has_ended)

    def send(self, data: Payload) -> int:
        """Send at most ``TLS_PIECE`` of the data; return how many bytes.

        After BlockingIOError or a timeout the next call must begin with the same data.
        """
        if not self._taken:
            self._taken = self._tls.write(memoryview(data)[:TLS_PIECE])
        self._flush()
        taken, self._taken = self._taken, 0
        return taken

    def sendall(self, data: bytes) -> None:
        """Send all of the data."""
        left = memoryview(data)
        while left:
            left = left[self.send(left) :]

    def _flush(self) -> None:
        """Send the records that OpenSSL has made."""
        while self._unsent or self._leaving.pending:
            self._unsent = self._unsent or memoryview(self._leaving.read())
            self._unsent = self._unsent[self.socket.send(self._unsent) :]

    def recv(self, count: int) -> bytes:
        """Receive at most so many bytes; none at the end."""
        data = bytearray(count)
        return bytes(data[: self.recv_into(memoryview(data))])

    def recv_into(self, room: memoryview) -> int:
        """Receive as much as there is and fits; return how many bytes, 0 at the end."""
        count = 0
        while count < len(room):
            try:
                got = cast(int, self._tls.read(len(room) - count, room[count:]))
            except ssl.SSLWantReadError:
                if count:
                    break
                self._receive()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
            else:
                count += got
                if not got:
                    break
        return count

    def _receive(self) -> None:
        """Pass received bytes to OpenSSL."""
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise socket.timeout("the peer took too long to prove who it is")
            self.socket.settimeout(left)
        got = self.socket.recv_into(self._room)
        if got:
            self._arrived.write(self._room[:got])
        else:
            self._has_ended = True
            self._arrived.write_eof()

    def stop_waiting(self) -> None:
        """Raise BlockingIOError from now on where a call would wait: the peer has proved who it is."""
        self._until = None
        self.socket.settimeout(0.0)

    def fileno(self) -> int:
        """Return the descriptor; -1 if it was closed."""
        return self.socket.fileno()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


def wrap(engine: ssl.SSLContext, peer: str, serves: bool, connection: socket.socket) -> TlsConnection:
    """Put TLS around a connection; raise OSError or HandshakeError unless the peer has the certificate ``peer``."""
    wrapped = TlsConnection(engine, serves, connection)
    try:
        check_peer(wrapped.certificate, peer)
    except HandshakeError:
        wrapped.close()
        raise
    return wrapped


def check_peer(shown: bytes | None, peer: str) -> None:
    """Raise HandshakeError unless the certificate that the peer has shown (DER) is the expected one (PEM text)."""
    if not shown or not hmac.compare_digest(shown, ssl.PEM_cert_to_DER_cert(peer)):
        raise HandshakeError("the peer's certificate is not the one that was created for it")


class TlsChannel(Channel):
    """The conversation inside TLS. OpenSSL lets only one thread at a time use a connection, hence the lock."""

    checks = False  # TLS authenticates every byte

    def __init__(self, connection: TlsConnection, timeout: float) -> None:
        self._tls, self._using = connection, threading.Lock()
        super().__init__(connection.fileno(), connection.fileno(), timeout)
        connection.stop_waiting()

    def _write_some(self, parts: list[memoryview]) -> int:
        pieces, left = [], TLS_PIECE
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
