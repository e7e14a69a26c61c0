# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask an ssh server what it offers, without logging in. Private to the collection."""

from __future__ import annotations

import socket
import time
from typing import NamedTuple

from .kexinit import CLIENT_VERSION, NotSsh, Offer, parse

_CHUNK = 65536


class NoAnswer(Exception):
    """The server did not tell its offer; the text says why, and what to do."""


class Answer(NamedTuple):
    """An offer, and the address that it came from."""

    offer: Offer
    address: str

    def algorithms(self) -> dict[str, list[str]]:
        """Return the algorithms by kind; those of a cipher, a MAC and a compression work in both directions."""
        lists = self.offer.lists
        both = {
            kind: [name for name in lists[f"{kind}_to_server"] if name in lists[f"{kind}_to_client"]]
            for kind in ("ciphers", "macs", "compression")
        }
        return {**both, "kex": lists["kex"], "host_keys": lists["host_keys"]}


def ask(host: str, port: int, timeout: float) -> Answer:
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
            return Answer(_read(connection, end), address)
        except NotSsh as error:
            raise NoAnswer(f"What listens at {where} is not an ssh server that can be used: {error}.") from error
        except OSError as error:
            reason = "it is silent" if isinstance(error, socket.timeout) else str(error.strerror or error)
            raise NoAnswer(
                f"{where} accepted the connection and did not say what it offers ({reason}). An sshd does that which "
                "has too many logins at once (MaxStartups) or punishes this address (PerSourcePenalties), and a "
                "firewall does. Try again later."
            ) from error


def _read(connection: socket.socket, end: float) -> Offer:
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
