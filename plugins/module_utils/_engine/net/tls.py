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
from typing import TYPE_CHECKING, cast

from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..wire.handshake import HandshakeError
from .control_channel import Channel
from .data_connection import TLS_PIECE

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

CERTIFICATE, KEY, PEER = "tls_certificate", "tls_key", "tls_peer"  # names of the secrets, PEM texts
_WOULD_WAIT = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
_RECORDS = 16  # taken from OpenSSL at once


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


class TlsSocket(ssl.SSLSocket):
    """A connection inside TLS that behaves as a plain one: a call that would wait raises BlockingIOError."""

    def send(self, data: ReadableBuffer, flags: int = 0) -> int:
        """Send some of the data; after BlockingIOError the next call must begin with the same data."""
        try:
            return super().send(data, flags)
        except _WOULD_WAIT:
            raise BlockingIOError from None

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        """Receive from one record at most; return how many bytes, 0 at the end."""
        try:
            return super().recv_into(buffer, nbytes, flags)
        except _WOULD_WAIT:
            raise BlockingIOError from None

    def shutdown(self, how: int) -> None:
        """End the connection; unlike SSLSocket's, never let a thread that uses it go on without TLS."""
        socket.socket.shutdown(self, how)


def wrap(engine: ssl.SSLContext, peer: str, serves: bool, connection: socket.socket) -> TlsSocket:
    """Put TLS around a connection; raise OSError or HandshakeError unless the peer has the certificate ``peer``.

    The whole TLS handshake may take as long as the timeout of the connection says.
    """
    engine.sslsocket_class = TlsSocket
    wrapped = cast(TlsSocket, engine.wrap_socket(connection, server_side=serves))
    try:
        check_peer(wrapped.getpeercert(binary_form=True), peer)
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

    def __init__(self, connection: TlsSocket, timeout: float) -> None:
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
        with self._using:
            return self._tls.send(b"".join(pieces) if len(pieces) > 1 else pieces[0])

    def _read_some(self, room: memoryview) -> int:
        """Read several records, which have 16 KiB at most."""
        count = 0
        with self._using:
            try:
                for _record in range(_RECORDS):
                    got = self._tls.recv_into(room[count:])
                    count += got
                    if not got or count == len(room):
                        break  # the end shows again at the next call
            except BlockingIOError:
                if not count:
                    raise
        return count

    def _wait(self, fd: int, event: int) -> bool:
        """Do not wait for the rest of a record that OpenSSL holds already."""
        with self._using:
            is_ready = event == select.POLLIN and bool(self._tls.pending())
        return is_ready or super()._wait(fd, event)

    def close(self) -> None:
        """Close the connection; nobody may be sending or receiving any more."""
        self.abort("it was closed")
        self._closed = True
        with contextlib.suppress(OSError):
            self._tls.close()
