# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first bytes of every connection: which one it is. Pure.

All connections come to one port. Number 0 carries the conversation, the others contents. In plain mode it is the first
thing that the driving end sends; with TLS it comes first inside of it. The handshake follows in both.
"""

from __future__ import annotations

import struct

from .handshake import HandshakeError

MAGIC = b"LHSTREAM"
VERSION = 1
CONTROL = 0
MAX_STREAMS = 64

_HELLO = struct.Struct("!8sHH")
HELLO_BYTES = _HELLO.size


def encode(number: int) -> bytes:
    """Return the hello of connection ``number``."""
    return _HELLO.pack(MAGIC, VERSION, number)


def decode(data: bytes) -> int:
    """Return the number of the connection; raise HandshakeError if it is not one of ours."""
    if len(data) != HELLO_BYTES:
        raise HandshakeError("who connected did not say hello")
    magic, version, number = _HELLO.unpack(data)
    if magic != MAGIC:
        raise HandshakeError("who connected does not speak this protocol")
    if version != VERSION:
        raise HandshakeError(f"the peer uses version {version} of the protocol, this side {VERSION}")
    if number > MAX_STREAMS:
        raise HandshakeError(f"connection {number} is more than the {MAX_STREAMS} that are allowed")
    return int(number)
