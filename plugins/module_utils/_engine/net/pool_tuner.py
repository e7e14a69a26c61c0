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
from .tcp_info import congestion_of, default_congestion, offered_congestion, pace, set_congestion
from .tcp_stats import NOTHING, Infos, Path, PathMeter, joined, path_of, sample_links

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
    tuner = _Tuner(log, congestion == AUTO and CANDIDATE in offered_congestion(), streams.congestion)
    meter, whole = PathMeter(), NOTHING
    while not over.wait(LOOK_SECONDS):
        links = streams.links()
        infos = sample_links(links)
        # Where queues fill and drain by turns, the last round trip says little: that of all packets counts.
        whole = joined([whole, meter.take(infos)])
        streams.rtt = whole.rtt
        tuner.look(links, infos, limit())
        streams.congestion = tuner.found


class _Tuner:
    def __init__(self, log: Callable[[str], None], is_auto: bool, found: str) -> None:
        self._log = log
        self._choice = CongestionChoice() if is_auto else None
        self._at = time.monotonic()
        self._paced: dict[DataConnection, int] = {}
        self._own: dict[int, str] = {}  # what those connections had that changed over
        self.found = found  # what a connection that is made now is to begin with; empty: the host's own
        self._before: dict[DataConnection, tuple[int, Path]] = {}
        self._min_rtt = float("inf")  # of all: one that was made while packets had to wait knows no shorter one

    def look(self, links: list[DataConnection], infos: Infos, limit: int) -> None:
        """Change what is to be changed, by what the system says of the connections."""
        if self._choice is not None and not self._choice.over:
            by_number = {link.number: link for link in links}
            changes = self._choice.take(self._measure(infos))
            for change in changes:
                self._change(by_number[change.number], change)
            if self._choice.kept:
                self.found = CANDIDATE
            elif any(not change.name for change in changes):
                self.found = ""
        self._pace(links, limit)

    def _pace(self, links: list[DataConnection], limit: int) -> None:
        rates = self._choice.rates if self._choice is not None else {}
        wanted = {link: min(filter(None, (limit, rates.get(link.number, 0))), default=0) for link in links}
        for link, rate in wanted.items():
            if self._paced.get(link, 0) != rate:
                pace(link.socket, rate)
        self._paced = wanted

    def _measure(self, infos: Infos) -> dict[int, Look]:
        now = time.monotonic()
        seconds, self._at = now - self._at, now
        before, self._before = self._before, {}
        looks = {}
        for link, info in infos.items():
            self._min_rtt = min(self._min_rtt, info.min_rtt or self._min_rtt)
            path = path_of(info)._replace(min_rtt=self._min_rtt)
            acked_before, path_before = before.get(link, (0, NOTHING))
            acked = info.acked - acked_before
            has_candidate = congestion_of(link.socket) == CANDIDATE
            engaged = bool(acked) or not link.at_rest
            looks[link.number] = Look(seconds, acked, path.since(path_before), engaged, has_candidate)
            self._before[link] = info.acked, path
        return looks

    def _change(self, link: DataConnection, change: Change) -> None:
        now = congestion_of(link.socket)
        if now != CANDIDATE:
            self._own[link.number] = now
        own = self._own.get(link.number) or default_congestion()  # of one that began with the candidate
        name = change.name or own
        if name == now or not set_congestion(link.socket, name):
            return
        if change.name:
            self._log(f"packets are lost on an idle line: data connection {link.number} tries {name} instead of {own}")
        else:
            self._log(f"data connection {link.number} carries no more with {CANDIDATE}: it has {own} again")
