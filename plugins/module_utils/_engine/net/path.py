# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happened to the packets of connections, and what that says about the line. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Sequence

from .tcp_info import LONG_RTT

if TYPE_CHECKING:
    from .tcp_info import TcpInfo

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
