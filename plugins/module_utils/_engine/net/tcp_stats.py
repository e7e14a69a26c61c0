# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Statistics of TCP connections: packets, losses, round trips, full windows, and what they say about the line.

Most transfers are over before anything here is needed, so it is imported after a moment, or at the end.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Collection, Dict, Iterable, NamedTuple, Sequence

from .tcp_info import LONG_RTT, TcpInfo, congestion_of, offered_congestion, read_tcp_info

if TYPE_CHECKING:
    from typing import TypedDict

    from .data_connection import DataConnection

    class ConnectionTotals(TypedDict):
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
    ConnectionTotals = dict

_LOSSY = 0.0002  # share of the packets that are lost
_QUEUEING = 1.25  # times the shortest round trip: below that nothing waits in a queue
_EMPTY_SECONDS = 5.0  # so long a queue that was full may be empty after it


class Path(NamedTuple):
    """What happened to packets: how many there were, how many of them were lost; round trips in seconds."""

    packets: int
    lost: int
    rtt: float
    min_rtt: float
    deviation: float = 0.0  # of round trips from ``rtt``, on average

    def since(self, before: Path) -> Path:
        """Return what happened since an earlier look at the same connection."""
        return self._replace(packets=self.packets - before.packets, lost=self.lost - before.lost)

    @property
    def is_long(self) -> bool:
        """Whether a loss, or a connection that comes or goes, costs time."""
        return self.min_rtt >= LONG_RTT

    @property
    def queues(self) -> bool:
        """Whether packets wait for others."""
        return self.rtt > _QUEUEING * self.min_rtt

    @property
    def is_full(self) -> bool:
        """Whether all packets wait for others, and not only some that came late."""
        return self.rtt - 2 * self.deviation > _QUEUEING * self.min_rtt

    @property
    def loses(self) -> bool:
        """Whether more packets are lost than a clean line loses."""
        return self.lost > 0 and self.lost >= _LOSSY * self.packets

    @property
    def starves(self) -> bool:
        """Whether losses hold back those who use it, and no queue does."""
        return self.is_long and not self.queues and self.loses


NOTHING = Path(0, 0, 0.0, 0.0)


def path_of(info: TcpInfo) -> Path:
    """Return what happened to the packets of a connection since it was made."""
    return Path(info.packets, info.lost, info.rtt, info.min_rtt, info.deviation)


def joined(paths: Sequence[Path]) -> Path:
    """Return several connections, or one at several times, as one: all packets, and the round trip of most of them."""
    packets, lost = sum(path.packets for path in paths), sum(path.lost for path in paths)
    measured = [path for path in paths if path.rtt and path.packets > 0]
    weight = sum(path.packets for path in measured)
    rtt = sum(path.rtt * path.packets for path in measured) / weight if weight else 0.0
    deviation = sum(path.deviation * path.packets for path in measured) / weight if weight else 0.0
    shortest = [path.min_rtt for path in paths if path.min_rtt]
    return Path(packets, lost, rtt, min(shortest) if shortest else 0.0, deviation)


class LastQueue:
    """When packets last waited in a queue.

    A full line loses much at once, above all where connections begin. Then it is idle for a while, and what is sent
    again looks like the losses of a line that is never full.
    """

    def __init__(self) -> None:
        self._seconds = float("inf")  # since then

    def take(self, seconds: float, path: Path) -> None:
        """Learn what happened in the last seconds."""
        self._seconds = 0.0 if path.queues else self._seconds + seconds

    @property
    def is_recent(self) -> bool:
        """Whether losses may come from it."""
        return self._seconds < _EMPTY_SECONDS


Infos = Dict["DataConnection", TcpInfo]


def sample_links(links: Iterable[DataConnection]) -> Infos:
    """Read the kernel's statistics of connections; leave out those of which it has none."""
    said = ((link, read_tcp_info(link.socket)) for link in links)
    return {link: info for link, info in said if info is not None}


class PathMeter:
    """Compares looks at connections, of which some may come and go."""

    def __init__(self) -> None:
        self._before: dict[DataConnection, Path] = {}

    def take(self, infos: Infos) -> Path:
        """Return what happened since the last look, over all connections together."""
        before, self._before = self._before, {link: path_of(info) for link, info in infos.items()}
        return joined([path.since(before.get(link, NOTHING)) for link, path in self._before.items()])


class ConnectionSample(NamedTuple):
    """Statistics of one connection, and its congestion control."""

    info: TcpInfo
    congestion: str


def sample_connection(connection: socket.socket) -> ConnectionSample | None:
    """Read the kernel's statistics of a connection; None if it has none."""
    info = read_tcp_info(connection)
    return ConnectionSample(info, congestion_of(connection)) if info is not None and info.packets else None


def sample_descriptor(fd: int) -> ConnectionSample | None:
    """Read them of a descriptor, which stays open; None also if it is no connection."""
    try:
        with socket.socket(fileno=os.dup(fd)) as connection:
            return sample_connection(connection)
    except OSError:
        return None


def add_up(samples: Collection[ConnectionSample], found: str = "", rtt: float = 0.0) -> ConnectionTotals | None:
    """Add up connections, with the congestion control that was ``found`` to carry more; None if there are none.

    ``rtt`` is the round trip over all that was sent, 0 if only the last one is known.
    """
    if not samples:
        return None
    path = joined([path_of(one.info) for one in samples])
    return {
        "packets": path.packets,
        "lost": path.lost,
        "rtt": round(rtt or path.rtt, 6),
        "min_rtt": path.min_rtt,
        "busy": round(sum(one.info.busy for one in samples), 3),
        "window_limited": round(sum(one.info.window_limited for one in samples), 3),
        "buffer_limited": round(sum(one.info.buffer_limited for one in samples), 3),
        "congestion": sorted({one.congestion for one in samples if one.congestion}),
        "offered": sorted(offered_congestion()),
        "found": found,
    }
