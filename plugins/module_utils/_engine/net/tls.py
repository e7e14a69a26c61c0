# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TLS between the two ends of one transfer: 1.3 only, each end trusts one certificate.

The certificates are made for this transfer on the control node. The key reaches OpenSSL through a path that is on no
disk (``Context.secret_file``).
"""

from __future__ import annotations

import hmac
import os
import socket
import ssl

from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..wire.handshake import HandshakeError

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


def wrap(engine: ssl.SSLContext, peer: str, serves: bool, connection: socket.socket) -> ssl.SSLSocket:
    """Put TLS around a connection; raise OSError or HandshakeError unless the peer has the certificate ``peer``."""
    wrapped = engine.wrap_socket(connection, server_side=serves)
    try:
        check_peer(wrapped, peer)
    except HandshakeError:
        wrapped.close()
        raise
    return wrapped


def check_peer(connection: ssl.SSLSocket, peer: str) -> None:
    """Raise HandshakeError unless the peer's certificate is the expected one (PEM text)."""
    shown = connection.getpeercert(binary_form=True)
    if not shown or not hmac.compare_digest(shown, ssl.PEM_cert_to_DER_cert(peer)):
        raise HandshakeError("the peer's certificate is not the one that was created for it")
