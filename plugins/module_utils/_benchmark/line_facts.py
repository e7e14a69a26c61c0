# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what a host says of its side of a line: interfaces, bonds, buffers, and the kernel's view of a connection."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from typing import TYPE_CHECKING, Mapping, NamedTuple

from .._core.subprocesses import find_program, run
from .._engine.net.tcp_info import congestion_of, read_tcp_info

if TYPE_CHECKING:
    from typing import TypedDict

    class TcpFacts(TypedDict):
        """One connection as one end sees it. What is not known is 0 or empty."""

        round_trip: float  # seconds, the shortest
        sent: int  # segments with data
        lost: int  # of those: sent again
        path_mtu: int
        congestion: str

    class SideFacts(TypedDict):
        """One side of a line. What is not known is 0 or empty."""

        interface: float  # bytes a second
        bond: str  # its mode
        send_buffer: int  # bytes, at most
        receive_buffer: int

else:  # making such classes takes time at each job's start
    TcpFacts = SideFacts = dict

_NET = "/sys/class/net"
_SETTINGS = "/proc/sys/net/ipv4"
_ADDRESS = re.compile(r"^\d+: (\S+?)(?:@\S+)? +inet6? ([0-9a-fA-F.:]+)", re.MULTILINE)
_MEGABIT = 125_000  # bytes
_IP_MTU, _IPV6_MTU = 14, 24  # <linux/in.h>, <linux/in6.h>
_SECONDS = 10.0


class Interface(NamedTuple):
    """A network interface."""

    speed: float  # bytes a second; 0 where it is not known
    bond: str  # mode; empty if it is none


class HostLine(NamedTuple):
    """Facts of a host about its network before a line is measured."""

    interfaces: Mapping[str, Interface]  # by address
    buffers: tuple[int, int]  # bytes that a connection may have in its send and its receive buffer


def read_host() -> HostLine:
    """Return it, while this process may still read everything and start programs."""
    return HostLine(read_interfaces(), read_buffers())


def read_interfaces() -> dict[str, Interface]:
    """Return the interfaces of this host by the addresses they have; none if the system does not say."""
    program = find_program("ip")
    if not program:
        return {}
    try:
        said = run([program, "-o", "address", "show"], timeout=_SECONDS).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {address: _read_interface(name) for address, name in parse_addresses(said).items()}


def parse_addresses(said: str) -> dict[str, str]:
    """Return the names of interfaces by their addresses, from ``ip -o address show``. Pure."""
    return {address: name for name, address in _ADDRESS.findall(said)}


def _read_interface(name: str) -> Interface:
    speed = _read(f"{_NET}/{name}/speed")
    mode = _read(f"{_NET}/{name}/bonding/mode").split()
    return Interface(float(speed) * _MEGABIT if speed.isdigit() else 0.0, mode[0] if mode else "")


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.read().strip()
    except OSError:  # a virtual interface has no speed, and says EINVAL
        return ""


def read_buffers() -> tuple[int, int]:
    """Return how many bytes a connection may have in its send and its receive buffer, by the limits of this host."""
    words = [_read(f"{_SETTINGS}/{name}").split() for name in ("tcp_wmem", "tcp_rmem")]
    send, receive = (int(one[2]) if len(one) == 3 and one[2].isdigit() else 0 for one in words)
    return send, receive


def side_facts(connection: socket.socket, host: HostLine) -> SideFacts:
    """Return the side of a line that a connection leaves by."""
    address = str(connection.getsockname()[0]).partition("%")[0]
    plain = address[len("::ffff:") :] if address.startswith("::ffff:") else address
    found = host.interfaces.get(plain, Interface(0.0, ""))
    return {
        "interface": found.speed,
        "bond": found.bond,
        "send_buffer": host.buffers[0],
        "receive_buffer": host.buffers[1],
    }


def tcp_facts(connection: socket.socket) -> TcpFacts:
    """Return what the kernel knows of a connection; the counts are those of what this end has sent."""
    info = read_tcp_info(connection)
    return {
        "round_trip": info.min_rtt if info else 0.0,
        "sent": info.sent if info else 0,
        "lost": info.resent if info else 0,
        "path_mtu": _path_mtu(connection),
        "congestion": congestion_of(connection),
    }


def _path_mtu(connection: socket.socket) -> int:
    if not os.path.isdir(_SETTINGS):  # not Linux
        return 0
    try:
        if connection.family == socket.AF_INET6 and not str(connection.getpeername()[0]).startswith("::ffff:"):
            return connection.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU)
        return connection.getsockopt(socket.IPPROTO_IP, _IP_MTU)
    except OSError:
        return 0
