# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask an ssh server what it offers, without logging in. Private to the collection."""

from __future__ import annotations

import re
import socket
import struct
import time
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
_CHUNK = 65536


class NotSsh(Exception):
    """What came is not how an ssh server begins; the text says what it was."""


class ServerOffer(NamedTuple):
    """What a server said: ``version`` is its line (``SSH-2.0-OpenSSH_9.2p1``), ``lists`` the names of each of LISTS."""

    version: str
    lists: dict[str, list[str]]


def parse(data: bytes) -> ServerOffer | None:
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
    return ServerOffer(version, _lists(rest[6 : 4 + length - padding], version))


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


class NoAnswer(Exception):
    """The server did not tell its offer; the text says why, and what to do."""


class ProbeReply(NamedTuple):
    """An offer, and the address that it came from."""

    offer: ServerOffer
    address: str

    def algorithms(self) -> dict[str, list[str]]:
        """Return the algorithms by kind; those of a cipher, a MAC and a compression work in both directions."""
        lists = self.offer.lists
        both = {
            kind: [name for name in lists[f"{kind}_to_server"] if name in lists[f"{kind}_to_client"]]
            for kind in ("ciphers", "macs", "compression")
        }
        return {**both, "kex": lists["kex"], "host_keys": lists["host_keys"]}


def ask(host: str, port: int, timeout: float) -> ProbeReply:
    """Connect, read what the server says of itself, and close. ``timeout``: seconds for all of it. Raises NoAnswer."""
    end = time.monotonic() + timeout
    where = f"{host} port {port}"
    try:
        connection = socket.create_connection((host, port), timeout=timeout)
    except socket.gaierror as error:
        raise NoAnswer(f"This host does not know the name {host} ({error.strerror}). Give an address.") from error
    except (socket.timeout, OSError) as error:
        what = (
            "did not answer" if isinstance(error, socket.timeout) else f"cannot be reached ({error.strerror or error})"
        )
        raise NoAnswer(
            f"{where} {what}. Start its sshd, open the firewall for this host, or give the right address and port."
        ) from error
    with connection:
        address = connection.getpeername()[0]
        try:
            connection.sendall(CLIENT_VERSION)
            return ProbeReply(_read(connection, end), address)
        except NotSsh as error:
            raise NoAnswer(f"What listens at {where} is not an ssh server that can be used: {error}.") from error
        except OSError as error:
            reason = "it is silent" if isinstance(error, socket.timeout) else str(error.strerror or error)
            raise NoAnswer(
                f"{where} accepted the connection and did not say what it offers ({reason}). An sshd does that which "
                "has too many logins at once (MaxStartups) or punishes this address (PerSourcePenalties), and a "
                "firewall does. Try again later."
            ) from error


def _read(connection: socket.socket, end: float) -> ServerOffer:
    data = b""
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise socket.timeout()
        connection.settimeout(left)
        chunk = connection.recv(_CHUNK)
        if not chunk:
            raise ConnectionResetError(0, "it closed the connection")
        data += chunk
        offer = parse(data)
        if offer:
            return offer
