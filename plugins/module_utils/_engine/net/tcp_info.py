# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and set what Linux keeps of a TCP connection: round-trip times, losses, congestion control.

The layout is that of ``struct tcp_info`` in Linux's ``include/uapi/linux/tcp.h``, which only grows at its end.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
from typing import NamedTuple

LONG_RTT = 0.01  # seconds: on a line as long as this, each round trip that is waited for costs
_SIZE = 256  # bytes asked for; a kernel that knows less gives less
_U32, _U64 = struct.Struct("=I"), struct.Struct("=Q")
_RTT, _RTT_DEVIATION, _RCV_RTT, _TOTAL_RETRANS, _BYTES_ACKED, _MIN_RTT = 68, 72, 92, 100, 120, 148
_DATA_SEGS_IN, _DATA_SEGS_OUT, _RCV_OOOPACK = 152, 156, 224
_BUSY, _RWND_LIMITED, _SNDBUF_LIMITED = 168, 176, 184
_NO_RTT = 0xFFFFFFFF  # min_rtt before the first one
_SO_MAX_PACING_RATE = 47
_UNPACED = 0xFFFFFFFF
_TCP_NOTSENT_LOWAT = 25
_LISTS = "/proc/sys/net/ipv4/tcp_{}_congestion_control"


class TcpInfo(NamedTuple):
    """One connection now; the counts are those since it was made. Times are in seconds, 0 where they are not known."""

    rtt: float  # of what this end sends, smoothed; of what it receives, where it sends nothing
    min_rtt: float
    acked: int  # bytes
    packets: int  # with data, in the direction that carries more
    lost: int  # of those: sent again, or not received in their turn
    busy: float  # seconds in which it had something to send
    window_limited: float  # of those: in which the peer's receive window was full
    buffer_limited: float  # of those: in which its own send buffer was too small
    deviation: float = 0.0  # of round trips from their mean, on average
    sent: int = 0  # packets with data, in this end's own direction
    resent: int = 0  # of those: sent again


def parse_tcp_info(data: bytes) -> TcpInfo | None:
    """Read ``struct tcp_info``; None if the kernel is too old for it."""
    if len(data) < _DATA_SEGS_OUT + _U32.size:
        return None

    def u32(offset: int) -> int:
        return int(_U32.unpack_from(data, offset)[0])

    def seconds(offset: int) -> float:
        return _U64.unpack_from(data, offset)[0] / 1e6 if len(data) >= offset + _U64.size else 0.0

    sent, received = u32(_DATA_SEGS_OUT), u32(_DATA_SEGS_IN)
    lowest = u32(_MIN_RTT)
    resent = u32(_TOTAL_RETRANS)
    rtt, deviation, lost = u32(_RTT), u32(_RTT_DEVIATION), resent
    if received > sent:
        rtt, deviation = u32(_RCV_RTT) or rtt, 0
        lost = u32(_RCV_OOOPACK) if len(data) >= _RCV_OOOPACK + _U32.size else 0
    min_rtt = rtt if lowest == _NO_RTT else lowest
    acked = int(_U64.unpack_from(data, _BYTES_ACKED)[0])
    limits = (seconds(_BUSY), seconds(_RWND_LIMITED), seconds(_SNDBUF_LIMITED))
    return TcpInfo(rtt / 1e6, min_rtt / 1e6, acked, max(sent, received), lost, *limits, deviation / 1e6, sent, resent)


def read_tcp_info(connection: socket.socket) -> TcpInfo | None:
    """Return what is known about a connection; None if the system does not say, or it is closed."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return parse_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SIZE))
    except (OSError, ValueError):
        return None


def is_long(connection: socket.socket) -> bool:
    """Return whether a connection is known to have a long round trip."""
    info = read_tcp_info(connection)
    return info is not None and info.min_rtt >= LONG_RTT


def congestion_of(connection: socket.socket) -> str:
    """Return the name of a connection's congestion control; empty if the system does not say."""
    try:
        name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    except (AttributeError, OSError, ValueError):
        return ""
    return name.partition(b"\0")[0].decode("ascii", "replace")


def default_congestion() -> str:
    """Return the name of the congestion control that new connections of this host have; empty if it does not say."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        return congestion_of(connection)


def set_congestion(connection: socket.socket, name: str) -> bool:
    """Set the congestion control of a connection, and return whether it has it then."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except (AttributeError, OSError, ValueError):
        return False
    return True


def offered_congestion() -> frozenset[str]:
    """Return the congestion controls that are loaded on this host, and that every user may take.

    A process with more rights would have the kernel load one by naming it, so the lists are asked beforehand.
    """
    found = []
    for name in ("available", "allowed"):
        try:
            with open(_LISTS.format(name), encoding="ascii", errors="replace") as stream:
                found.append(frozenset(stream.read().split()))
        except OSError:
            return frozenset()
    return found[0] & found[1]


def pace(connection: socket.socket, rate: int) -> None:
    """Let the kernel send no more than ``rate`` bytes a second over a connection, evenly; 0: as much as goes."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, ValueError):
            limit = min(rate, _UNPACED - 1) if rate else _UNPACED
            connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, _U32.pack(limit))


def bound_unsent(connection: socket.socket, count: int) -> None:
    """Let the kernel take little more of a connection's data than it can send now and ``count`` bytes."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, ValueError):
            connection.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, count)
