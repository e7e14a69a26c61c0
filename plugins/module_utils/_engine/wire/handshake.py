# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hello and the handshake of a connection. No I/O.

All connections come to one port. The hello says which one it is: number 0 carries the conversation, the others
contents. It is the first thing that the driving end sends; with TLS it comes first inside of it.

Then the two ends prove to each other that they know the one-time secret. The driving end sends a nonce; the serving end
answers with its own and a proof over both; the driving end proves in turn. The proofs are HMAC-SHA256 over the role,
the number of the connection and both nonces, so that neither can be repeated, reflected or used on another connection.
The keys of the control frames come from the same exchange.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from typing import NamedTuple

HELLO_MAGIC = b"LHSTREAM"
VERSION = 1
CONTROL = 0  # the number of the connection that carries the conversation
MAX_STREAMS = 64
_HELLO = struct.Struct("!8sHH")
HELLO_BYTES = _HELLO.size

MAGIC = b"LHX\x00\x00\x00\x00\x01"  # the last byte is the version
NONCE_BYTES = 32
PROOF_BYTES = 32

OFFER_BYTES = len(MAGIC) + NONCE_BYTES  # driving end to serving end
ANSWER_BYTES = len(MAGIC) + NONCE_BYTES + PROOF_BYTES  # serving end to driving end
CONFIRM_BYTES = PROOF_BYTES  # driving end to serving end


class HandshakeError(Exception):
    """The peer is not the one of this transfer."""


class Keys(NamedTuple):
    """What the two directions of a connection are authenticated with."""

    drive: bytes  # of what the driving end sends
    serve: bytes  # of what the serving end sends


def encode_hello(number: int) -> bytes:
    """Return the hello of connection ``number``."""
    return _HELLO.pack(HELLO_MAGIC, VERSION, number)


def decode_hello(data: bytes) -> int:
    """Return the number of the connection; raise HandshakeError if it is not one of ours."""
    if len(data) != HELLO_BYTES:
        raise HandshakeError("who connected did not say hello")
    magic, version, number = _HELLO.unpack(data)
    if magic != HELLO_MAGIC:
        raise HandshakeError("who connected does not speak this protocol")
    if version != VERSION:
        raise HandshakeError(f"the peer uses version {version} of the protocol, this side {VERSION}")
    if number > MAX_STREAMS:
        raise HandshakeError(f"connection {number} is more than the {MAX_STREAMS} that are allowed")
    return int(number)


def _prove(secret: str, label: str, number: int, drive_nonce: bytes, serve_nonce: bytes) -> bytes:
    text = f"longhaul exchange 1 {label} {number} ".encode() + drive_nonce + serve_nonce
    return hmac.new(secret.encode(), text, hashlib.sha256).digest()


class _Handshake:
    def __init__(self, secret: str, number: int) -> None:
        if not secret:
            raise HandshakeError("there is no one-time secret: nobody could be told from a stranger")
        self._secret, self._number = secret, number
        self._own = os.urandom(NONCE_BYTES)

    def _keys(self, drive_nonce: bytes, serve_nonce: bytes) -> Keys:
        return Keys(
            _prove(self._secret, "key drive", self._number, drive_nonce, serve_nonce),
            _prove(self._secret, "key serve", self._number, drive_nonce, serve_nonce),
        )


def _nonce(message: bytes, length: int) -> bytes:
    if len(message) != length or not message.startswith(MAGIC):
        raise HandshakeError("what answered on the port does not speak this protocol")
    return message[len(MAGIC) : len(MAGIC) + NONCE_BYTES]


class DriveHandshake(_Handshake):
    """The driving end: ``offer()``, then ``answer(...)`` gives what to send and the keys."""

    def offer(self) -> bytes:
        """Return the first message."""
        return MAGIC + self._own

    def answer(self, message: bytes) -> tuple[bytes, Keys]:
        """Check the serving end's proof (ANSWER_BYTES); gives the own proof and the keys."""
        other = _nonce(message, ANSWER_BYTES)
        if not hmac.compare_digest(message[-PROOF_BYTES:], self._proof("serve", other)):
            raise HandshakeError("what answered on the port does not know this transfer's secret")
        return self._proof("drive", other), self._keys(self._own, other)

    def _proof(self, role: str, other: bytes) -> bytes:
        return _prove(self._secret, role, self._number, self._own, other)


class ServeHandshake(_Handshake):
    """The serving end: ``answer(...)`` to an offer, then ``confirm(...)`` gives the keys."""

    _other = b""

    def answer(self, message: bytes) -> bytes:
        """Take the driving end's offer (OFFER_BYTES); gives the answer with the own proof."""
        self._other = _nonce(message, OFFER_BYTES)
        return MAGIC + self._own + self._proof("serve")

    def confirm(self, message: bytes) -> Keys:
        """Check the driving end's proof (CONFIRM_BYTES)."""
        if not hmac.compare_digest(message, self._proof("drive")):
            raise HandshakeError("who connected does not know this transfer's secret")
        return self._keys(self._other, self._own)

    def _proof(self, role: str) -> bytes:
        return _prove(self._secret, role, self._number, self._other, self._own)
