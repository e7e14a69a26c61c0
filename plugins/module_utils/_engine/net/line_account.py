# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the connections of a transfer met on their way: packets, losses, round trips, full windows."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Collection, NamedTuple

from .tcp_info import TcpInfo, congestion_of, offered_congestion, read_tcp_info, socket_of

if TYPE_CHECKING:
    from typing import TypedDict

    class Met(TypedDict):
        """All connections together. Times are seconds."""

        packets: int
        lost: int
        rtt: float  # of most packets
        min_rtt: float  # the shortest of all
        busy: float  # in which a connection had something to send; of those, in which
        window_limited: float  # the receive window at the destination was full
        buffer_limited: float  # the send buffer at the source was too small
        congestion: list[str]  # the congestion controls that sent
        offered: list[str]  # those that the source offers

else:  # making such classes takes time at each job's start
    Met = dict


class _Seen(NamedTuple):
    info: TcpInfo
    congestion: str


class LineAccount:
    """Adds up what the system says of the connections that send. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: list[_Seen] = []

    def end(self, connection: socket.socket) -> None:
        """Take what is to be said of a connection that is about to be closed."""
        seen = _look(connection)
        if seen is not None:
            with self._lock:
                self._ended.append(seen)

    def add_up(self, connections: Collection[socket.socket], channel_fd: int) -> Met | None:
        """Return what all that ended met, and these, and a connection of this descriptor, which may be none.

        None if the system says nothing.
        """
        with self._lock:
            all_seen = [*self._ended, *map(_look, connections)]
        with contextlib.suppress(OSError), socket_of(channel_fd) as channel:
            all_seen.append(_look(channel))
        seen = [one for one in all_seen if one is not None and one.info.packets]
        if not seen:
            return None
        packets = sum(one.info.packets for one in seen)
        shortest = [one.info.min_rtt for one in seen if one.info.min_rtt]
        return {
            "packets": packets,
            "lost": sum(one.info.lost for one in seen),
            "rtt": round(sum(one.info.rtt * one.info.packets for one in seen) / packets, 6),
            "min_rtt": min(shortest, default=0.0),
            "busy": round(sum(one.info.busy for one in seen), 3),
            "window_limited": round(sum(one.info.window_limited for one in seen), 3),
            "buffer_limited": round(sum(one.info.buffer_limited for one in seen), 3),
            "congestion": sorted({one.congestion for one in seen if one.congestion}),
            "offered": sorted(offered_congestion()),
        }


def _look(connection: socket.socket) -> _Seen | None:
    info = read_tcp_info(connection)
    return None if info is None else _Seen(info, congestion_of(connection))
