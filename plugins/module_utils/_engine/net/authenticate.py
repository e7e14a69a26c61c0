# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both ends of a new connection prove that they know the transfer's secret, over whatever carries their messages.

``read`` returns exactly so many bytes, and ``send`` sends all that it is given. What they raise comes out, and
HandshakeError where the peer is a stranger.
"""

from __future__ import annotations

import time
from typing import Callable

from ..wire.handshake import (
    ANSWER_BYTES,
    CONFIRM_BYTES,
    OFFER_BYTES,
    DriveHandshake,
    HandshakeError,
    Keys,
    ServeHandshake,
)

HANDSHAKE_SECONDS = 10.0  # for the handshake of a connection; through netcat for one message

Read = Callable[[int], bytes]
Send = Callable[[bytes], object]


def drive(secret: str, number: int, read: Read, send: Send, greeting: bytes = b"") -> Keys:
    """Be the driving end of connection ``number``; ``greeting`` goes before the first message."""
    shake = DriveHandshake(secret, number)
    send(greeting + shake.offer())
    confirmation, keys = shake.answer(read(ANSWER_BYTES))
    send(confirmation)
    return keys


def serve(secret: str, number: int, read: Read, send: Send) -> Keys:
    """Be the serving end of connection ``number``."""
    shake = ServeHandshake(secret, number)
    send(shake.answer(read(OFFER_BYTES)))
    return shake.confirm(read(CONFIRM_BYTES))


def read_exactly(receive: Callable[[int], bytes | None], count: int) -> bytes:
    """Return ``count`` bytes of what ``receive`` gives: at most so many, None for nothing yet, empty at the end.

    Raises HandshakeError if they do not come in time.
    """
    deadline, data = time.monotonic() + HANDSHAKE_SECONDS, b""
    while len(data) < count:
        if time.monotonic() > deadline:
            raise HandshakeError("the peer said too little")
        piece = receive(count - len(data))
        if piece is None:
            continue
        if not piece:
            raise HandshakeError("the connection ended during the handshake")
        data += piece
    return data
