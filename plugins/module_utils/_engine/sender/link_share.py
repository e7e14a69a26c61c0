# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A data connection that is about to send: how the kernel sends over it, and how much of files it is given at once."""

from __future__ import annotations

import time
from typing import Collection

from ..._core.errors import TransferFailed
from ..._model.congestion import AUTO, NONE
from ..._model.rate import smoothed
from ..net.data_connection import DataConnection
from ..net.tcp_info import LONG_RTT, bound_unsent, offered_congestion, pace, read_tcp_info, set_congestion
from ..wire.ranges import STEP, share

MUCH_FASTER = 4  # times as fast, so that a slower one leaves the end to it
END_SECONDS = 0.5
_LATE = 2  # times as long as another needs: then that one sends the range, too
_ALL = 1 << 62  # bytes: no range is longer
_UNSENT_SECONDS = 0.1  # of what a connection carries, that wait in the kernel
_LEAST_UNSENT = 32 << 10  # bytes


class LinkShare:
    """How much of files one connection gets done, be it contents, holes, or what the destination has already.

    The kernel makes room for what a connection once carried, and never takes it back. On a long line what waits there
    can take a connection longer that has become slow than all others need for the rest of the file. So it is bounded.
    Where the round trip is short, a connection is given whole ranges, and nothing is measured.
    """

    def __init__(self, link: DataConnection) -> None:
        self._link, self._at = link, time.monotonic()
        self._given = self._total = self._done = 0
        self._rate = 0.0  # bytes a second
        info = read_tcp_info(link.socket)
        self._rtt = info.min_rtt if info is not None else 0.0
        self.is_long = self._rtt >= LONG_RTT  # the round trip

    def next(self) -> int:
        """Return how many bytes the connection, which has done all that it was given, is given next."""
        if not self.is_long:
            return _ALL
        now, done = time.monotonic(), self._total - self._link.held()
        seconds = max(now - self._at, 1e-6)
        self._rate = smoothed(self._rate or None, max(0, done - self._done) / seconds, seconds)
        self._at, self._done = now, done
        self._given = share(self._rate, self._given)
        bound_unsent(self._link.socket, max(_LEAST_UNSENT, int(self._rate * _UNSENT_SECONDS)))
        return self._given

    @property
    def rate(self) -> float:
        """The bytes a second that it lately got done; 0 where that is not known."""
        return self._rate

    def outruns(self, count: int, seconds: float) -> bool:
        """Return whether another connection takes too long for ``count`` bytes, compared with this one."""
        return self._rate > 0 and seconds > _LATE * (self._rtt + count / self._rate)

    def gave(self, count: int) -> None:
        """So many bytes were there to be given."""
        self._total += count


def is_too_slow(own: float, others: Collection[float], left: int) -> bool:
    """Return whether others would send a connection's part of the ``left`` bytes sooner than it. Pure.

    ``own`` and ``others`` are bytes a second, 0 where that is not known yet.
    """
    if max(others, default=0.0) <= MUCH_FASTER * own:
        return False
    seconds = STEP / own if own else 0.0
    return max(END_SECONDS, seconds - END_SECONDS) > left / sum(others)


def prepare(link: DataConnection, congestion: str, limit: int, first: str = "") -> None:
    """Have the kernel send as this transfer should, ``limit`` bytes a second at most (0: any).

    ``first``: the congestion control with which the first connections begin where none is named, if it is offered.
    Raises TransferFailed if the congestion control that is named is not available.
    """
    if limit:
        pace(link.socket, limit)
    if congestion == AUTO:
        if first:
            _begin_with(link, first)
        return
    if congestion == NONE or (congestion in offered_congestion() and set_congestion(link.socket, congestion)):
        return
    raise TransferFailed(
        f"congestion is {congestion}, which the source does not offer to every process: see the sysctls "
        "net.ipv4.tcp_available_congestion_control and net.ipv4.tcp_allowed_congestion_control. Load it (modprobe "
        f"tcp_{congestion}) and allow it, or use congestion: auto"
    )


def _begin_with(link: DataConnection, congestion: str) -> None:
    """Let one of the first connections have a congestion control, where the source offers it."""
    from ..net.congestion import MOST

    if link.number <= MOST and congestion in offered_congestion():
        set_congestion(link.socket, congestion)
