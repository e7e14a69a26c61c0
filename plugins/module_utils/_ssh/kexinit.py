# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an ssh server offers, read from the first bytes that it sends. Private to the collection.

An ssh server names its version and then, unasked, every algorithm that it would use: the message SSH_MSG_KEXINIT,
which is not encrypted. Source: RFC 4253, sections 4.2 (version), 6 (packet) and 7.1 (key exchange). Everything here is
pure: it eats bytes and does no I/O.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

CLIENT_VERSION = b"SSH-2.0-longhaul_offer\r\n"
KEXINIT = 20
# In the order in which they stand in the message; the rest of them (languages) are not of use.
LISTS = (
    "kex",
    "host_keys",
    "ciphers_to_server",
    "ciphers_to_client",
    "macs_to_server",
    "macs_to_client",
    "compression_to_server",
    "compression_to_client",
)
MAX_LINE = 8192  # as OpenSSH takes them
MAX_LINES = 1024
MAX_PACKET = 262144
# What stands among the key exchanges and is none: RFC 8308 (ext-info) and OpenSSH's strict mode.
MARKERS = re.compile(rb"^(ext-info-[cs]|kex-strict-.*)$")


class NotSsh(Exception):
    """What came is not how an ssh server begins; the text says what it was."""


class Offer(NamedTuple):
    """What a server said: ``version`` is its line (``SSH-2.0-OpenSSH_9.2p1``), ``lists`` the names of each of LISTS."""

    version: str
    lists: dict[str, list[str]]


def parse(data: bytes) -> Offer | None:
    """Read the offer from all that the server has sent so far; None if more has to come. Raises NotSsh."""
    version, rest = _version(data)
    if version is None:
        return None
    if len(rest) < 6:
        return None
    length, padding, kind = struct.unpack(">IBB", rest[:6])
    if not 12 <= length <= MAX_PACKET or padding + 2 > length:
        raise NotSsh(f"{version} is followed by a packet of {length} bytes, which no ssh server sends")
    if kind != KEXINIT:
        raise NotSsh(f"{version} begins with message {kind}, and not with its algorithms (message {KEXINIT})")
    if len(rest) < 4 + length:
        return None
    return Offer(version, _lists(rest[6 : 4 + length - padding], version))


def _version(data: bytes) -> tuple[str | None, bytes]:
    """Split off the version line and whatever lines stand before it."""
    for _number in range(MAX_LINES):
        line, end, data = data.partition(b"\n")
        if len(line) > MAX_LINE:
            raise NotSsh(f"it sends lines of more than {MAX_LINE} bytes")
        if not end:
            return None, b""
        if line.startswith(b"SSH-"):
            version = line.rstrip(b"\r").decode("ascii", "replace")
            if not version.startswith(("SSH-2.0-", "SSH-1.99-")):
                raise NotSsh(f"{version} does not speak version 2 of the protocol")
            return version, data
    raise NotSsh(f"it sends more than {MAX_LINES} lines and never its version")


def _lists(body: bytes, version: str) -> dict[str, list[str]]:
    """Read the lists of names; ``body`` is the message from its cookie on, without the padding."""
    found = {}
    place = 16  # the cookie
    for name in LISTS:
        if place + 4 > len(body):
            raise NotSsh(f"{version} sent a message that ends before its list {name}")
        (size,) = struct.unpack(">I", body[place : place + 4])
        text = body[place + 4 : place + 4 + size]
        if len(text) != size:
            raise NotSsh(f"{version} sent a list {name} that is longer than its message")
        place += 4 + size
        entries = [entry for entry in text.split(b",") if entry and not MARKERS.match(entry)]
        found[name] = [entry.decode("ascii", "replace") for entry in entries]
    return found
