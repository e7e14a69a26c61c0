# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the connections of a transfer met on their way: packets, losses, round trips, full windows.

Nothing of this is imported before a transfer has taken a moment: most are over by then.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Collection, NamedTuple

from .path import joined, path_of
from .tcp_info import TcpInfo, congestion_of, offered_congestion, read_tcp_info

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
        found: str  # the one that was found to carry more than the host's own, or was so before

else:  # making such classes takes time at each job's start
    Met = dict


class Seen(NamedTuple):
    """What the system said of one connection."""

    info: TcpInfo
    congestion: str


def look(connection: socket.socket) -> Seen | None:
    """Return what there is to say of a connection; None if the system says nothing."""
    info = read_tcp_info(connection)
    return Seen(info, congestion_of(connection)) if info is not None and info.packets else None


def look_at_descriptor(fd: int) -> Seen | None:
    """Return the same for a descriptor, which stays the caller's; None if it is no connection either."""
    try:
        with socket.socket(fileno=os.dup(fd)) as connection:
            return look(connection)
    except OSError:
        return None


def add_up(seen: Collection[Seen], found: str = "", rtt: float = 0.0) -> Met | None:
    """Return what all these connections met, with the congestion control that was found; None if there are none.

    ``rtt`` is the round trip over all that was sent, 0 if only the last one is known.
    """
    if not seen:
        return None
    path = joined([path_of(one.info) for one in seen])
    return {
        "packets": path.packets,
        "lost": path.lost,
        "rtt": round(rtt or path.rtt, 6),
        "min_rtt": path.min_rtt,
        "busy": round(sum(one.info.busy for one in seen), 3),
        "window_limited": round(sum(one.info.window_limited for one in seen), 3),
        "buffer_limited": round(sum(one.info.buffer_limited for one in seen), 3),
        "congestion": sorted({one.congestion for one in seen if one.congestion}),
        "offered": sorted(offered_congestion()),
        "found": found,
    }
