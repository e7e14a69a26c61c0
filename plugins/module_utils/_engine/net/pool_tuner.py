# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep what the kernel of the sending side does for the data connections as it should be: congestion control, pacing.

Nothing of this is imported before a transfer has taken a moment: most are over by then.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Callable

from ..._model.congestion import AUTO
from .congestion import CANDIDATE, Change, CongestionChoice, Look
from .pool_scaling import NOTHING, Path, path_of
from .tcp_info import congestion_of, offered_congestion, pace, read_tcp_info, set_congestion

if TYPE_CHECKING:
    from .data_connection import DataConnection
    from .pool import ConnectionPool

LOOK_SECONDS = 0.5


def tune(
    streams: ConnectionPool,
    over: threading.Event,
    log: Callable[[str], None],
    congestion: str,
    limit: Callable[[], int],
) -> None:
    """Look after the connections until ``over`` is set; ``limit`` gives the bytes a second that are allowed, 0: any."""
    tuner = _Tuner(log, is_auto=congestion == AUTO and CANDIDATE in offered_congestion())
    while not over.wait(LOOK_SECONDS):
        tuner.look(streams.links(), limit())


class _Tuner:
    def __init__(self, log: Callable[[str], None], is_auto: bool) -> None:
        self._log = log
        self._choice = CongestionChoice() if is_auto else None
        self._at = time.monotonic()
        self._paced: dict[DataConnection, int] = {}
        self._own: dict[int, str] = {}  # what those connections had that changed over
        self._before: dict[DataConnection, tuple[int, Path]] = {}
        self._min_rtt = float("inf")  # of all: one that was made while packets had to wait knows no shorter one

    def look(self, links: list[DataConnection], limit: int) -> None:
        """Look at the connections, and change what is to be changed."""
        for link in links:
            if self._paced.get(link, 0) != limit:
                pace(link.socket, limit)
        self._paced = dict.fromkeys(links, limit)
        if self._choice is not None and not self._choice.over:
            by_number = {link.number: link for link in links}
            for change in self._choice.take(self._measure(links)):
                self._change(by_number[change.number], change)

    def _measure(self, links: list[DataConnection]) -> dict[int, Look]:
        now = time.monotonic()
        seconds, self._at = now - self._at, now
        before, self._before = self._before, {}
        looks = {}
        for link in links:
            info = read_tcp_info(link.socket)
            if info is None:
                continue
            self._min_rtt = min(self._min_rtt, info.min_rtt or self._min_rtt)
            path = path_of(info)._replace(min_rtt=self._min_rtt)
            acked_before, path_before = before.get(link, (0, NOTHING))
            acked = info.acked - acked_before
            looks[link.number] = Look(seconds, acked, path.since(path_before), bool(acked) or not link.at_rest)
            self._before[link] = info.acked, path
        return looks

    def _change(self, link: DataConnection, change: Change) -> None:
        own = self._own.setdefault(link.number, congestion_of(link.socket))
        name = change.name or own
        if name == congestion_of(link.socket) or not set_congestion(link.socket, name):
            return
        if change.name:
            self._log(f"packets are lost on an idle line: data connection {link.number} tries {name} instead of {own}")
        else:
            self._log(f"data connection {link.number} carries no more with {CANDIDATE}: it has {own} again")
