# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data connections of a transfer, a thread for each.

Either end may drive. The driving end makes the connections, and makes one again that was lost; the serving end takes
what comes. A lost connection costs only time as long as one can be made within the timeout. If it was not said how many
there should be, the driving end tries more than it began with.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Callable, Collection, Mapping

from ..._core import time_accounting
from ..._core.context import Context
from ..._core.errors import TransferFailed
from ..wire.handshake import HandshakeError
from .data_connection import ConnectionLost, DataConnection

_PAUSE = 0.5  # seconds between two attempts to connect
_ATTEMPTS = 3  # to make a further connection, without which all goes on


def _make_none(_number: int) -> DataConnection:
    raise OSError("this end makes no connections")


class ConnectionPool:
    """Runs ``work(link)`` for every data connection, until ``close``.

    ``work`` returns when its connection has served its purpose and raises ConnectionLost where it broke. Everything
    else that it raises, and that no connection is left for ``timeout`` seconds, goes to ``failed``.
    """

    def __init__(
        self,
        context: Context,
        timeout: float,
        work: Callable[[DataConnection], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._context, self._timeout, self._work, self._failed = context, timeout, work, failed
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._links: set[DataConnection] = set()
        self._threads: list[threading.Thread] = []
        self._alone_since = time.monotonic()  # when the last connection went
        self._why = "no data connection was made"
        self._needed = 0  # connections without which it does not go on; the others are welcome
        self._make: Callable[[int], DataConnection] = _make_none
        self._let_go: Callable[[Collection[int]], None] = self.dismiss
        self._kept: set[int] = set()  # the numbers of those that this end makes, and makes again
        self._leaving: set[int] = set()  # of those that it does not make again
        self.count = 0  # connections that this end keeps; 0 where it only takes what comes
        self.proven = 0  # of those, the ones that are not on trial
        self.congestion = ""  # the congestion control that the first ones begin with; empty: the host's own
        self.rtt = 0.0  # seconds: the round trip of what was sent while this end looked; 0: it did not
        self.refused = False  # a further one could not be made

    def connect(self, count: int, make: Callable[[int], DataConnection], needed: int) -> None:
        """Keep ``count`` connections, numbered from 1, that ``make`` makes (OSError or HandshakeError: not now).

        It does not do with less than ``needed``.
        """
        self._needed = needed
        self.count = self.proven = count
        self._make = make
        self._begin()

    def grow(self, most: int, limit: int, let_go: Callable[[Collection[int]], None] | None = None) -> None:
        """Have as many connections as pay, up to ``most``; they may carry ``limit`` bytes a second, 0: any number.

        ``let_go`` asks the peer to let those with some numbers end; where it is not given, this end can.
        """
        self._let_go = let_go or self.dismiss
        self._spawn(self._grow, most, limit)

    def _grow(self, most: int, limit: int) -> None:
        if self._over.wait(_PAUSE):
            return
        from .pool_scaling import grow

        with contextlib.suppress(TransferFailed):  # the conversation says that itself
            grow(self, self._over, self._context.side, most, limit)

    def tune(self, congestion: str, limit: Callable[[], int]) -> None:
        """Look after the congestion control and the pacing of what this end sends; see pool_tuner."""
        self._spawn(self._tune, congestion, limit)

    def _tune(self, congestion: str, limit: Callable[[], int]) -> None:
        if self._over.wait(_PAUSE):
            return
        from .pool_tuner import tune

        with contextlib.suppress(TransferFailed):  # as above
            tune(self, self._over, self._context.log, congestion, limit)

    def links(self) -> list[DataConnection]:
        """Return the connections that there are now."""
        with self._lock:
            return list(self._links)

    def resize(self, count: int, rates: Mapping[int, float] | None = None) -> None:
        """Keep so many connections from now on; ``rates`` says what those with these numbers carry.

        Those that carry least go. What stays grows into their part of the line: the less that is, the sooner.
        """
        before, self.count = self.count, count
        if count < before:
            self._context.log(f"{before} data connections carry no more than {count}: {count} stay")
            with self._lock:
                least_first = sorted(self._kept, key=lambda number: ((rates or {}).get(number, 0.0), -number))
                going = least_first[: max(0, len(least_first) - count)]
                self._kept.difference_update(going)
                self._leaving.update(going)
            self._let_go(going)
        elif count > before:
            self._context.log(f"{count} data connections are tried instead of {before}")
            self._begin()

    def dismiss(self, numbers: Collection[int]) -> None:
        """Let the connections with these numbers end as soon as their work is done."""
        for link in self.links():
            link.spare = link.spare or link.number in numbers

    def _begin(self) -> None:
        """Begin as many connections as there are too few, with the lowest numbers that no other one has."""
        with self._lock:
            taken = self._kept | self._leaving
            free = [number for number in range(1, len(taken) + self.count + 1) if number not in taken]
            new = free[: max(0, self.count - len(self._kept))]
            self._kept.update(new)
        for number in new:
            self._spawn(self._keep, number)

    def attach(self, link: DataConnection) -> None:
        """Use a connection that arrived."""
        self._spawn(self._use, link)

    def watch(self) -> None:
        """Watch from now on that there is a connection."""
        self._alone_since = time.monotonic()
        self._spawn(self._watch)

    def _spawn(self, target: Callable[..., object], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        with self._lock:
            self._threads = [old for old in self._threads if old.is_alive()]
            self._threads.append(thread)
            thread.start()

    def _keep(self, number: int) -> None:
        failures = 0
        while not self._over.is_set() and number in self._kept:
            try:
                link = self._make(number)
            except (OSError, HandshakeError) as error:
                self._why, failures = str(error), failures + 1
                if self.count > self._needed and failures == _ATTEMPTS:
                    self._do_without(number, error)
            else:
                failures = 0
                if self._use(link):
                    break
            self._over.wait(_PAUSE)
        with self._lock:
            self._kept.discard(number)
            self._leaving.discard(number)

    def _do_without(self, number: int, error: Exception) -> None:
        self._context.log(f"no further data connection can be made: {error}")
        with self._lock:
            self._kept.discard(number)
            self.count = min(self.count, len(self._kept))
            self.proven = min(self.proven, self.count)
        self.refused = True

    def _use(self, link: DataConnection) -> bool:
        """Work with a connection; says whether it served its purpose."""
        with self._lock:
            self._links.add(link)
        try:
            if self._over.is_set():
                return True
            self._work(link)
            return True
        except ConnectionLost as error:
            if not self._over.is_set():
                self._context.log(f"{error}; its work goes to the others")
                self._why = str(error)
            return False
        except BaseException as error:
            self._failed(error)
            return True
        finally:
            time_accounting.leave()  # whatever it was at when the connection broke
            with self._lock:
                self._links.discard(link)
                self._alone_since = time.monotonic()
            link.close()

    def _watch(self) -> None:
        while not self._over.wait(_PAUSE):
            if not self._links and time.monotonic() - self._alone_since > self._timeout:
                self._failed(
                    TransferFailed(
                        f"all data connections were lost for {self._timeout:.0f} seconds ({self._why}). What is in "
                        "place stays: run the task again to resume"
                    )
                )
                return

    def close(self) -> None:
        """End all connections and threads."""
        self._over.set()
        with self._lock:
            links, threads = list(self._links), list(self._threads)
        for link in links:
            link.abort()
        for thread in threads:
            thread.join()
