# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TCP ports that a program of ours can listen on."""

from __future__ import annotations

import errno
import os
import socket

from .errors import TransferFailed
from .host_name import bind_target

ESTABLISHED = "01"  # state of a socket, as /proc/net/tcp has it (source: proc(5))


def has_socket(port: int, state: str) -> bool | None:
    """Return whether this host has a TCP socket with this local port in a state; None if there is no /proc to tell."""
    tables = [path for path in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(path)]
    for path in tables:
        with open(path, encoding="ascii") as stream:
            for line in stream.readlines()[1:]:
                local, found = line.split()[1], line.split()[3]
                if found == state and int(local.rpartition(":")[2], 16) == port:
                    return True
    return False if tables else None


def free_port(address: str, wanted: int = 0) -> int:
    """Return a port that can be listened on at this moment: the one that is wanted, with 0 any; 0 where it is taken.

    ``address`` is one of this host's, empty for all of them. Raises TransferFailed if it is none of this host's, and
    where this user may not open the port.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(bind_target(address, wanted))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return 0
            raise cannot_listen(address, wanted, error) from error
        return int(probe.getsockname()[1])


def cannot_listen(address: str, port: int, error: OSError) -> TransferFailed:
    """Return the failure to listen at an address and port which no other program has taken."""
    reason = "that is none of its addresses" if error.errno == errno.EADDRNOTAVAIL else error.strerror
    return TransferFailed(
        f"this host cannot listen at {address or 'any address'} port {port}: {reason}. Set its host variable "
        "longhaul_address to one of its own addresses at which the other host reaches it, and port or port_range to "
        "ports that its user may open (1024 and above without root)"
    )
