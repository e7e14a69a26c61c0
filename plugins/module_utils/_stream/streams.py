# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data connections of a transfer, a thread for each. Private to the collection.

Either end may drive. The driving end makes the connections, and makes one again that was lost; the serving end takes
what comes. A lost connection costs only time as long as one can be made within the timeout.
"""

from __future__ import annotations

import threading
import time
from typing import Callable

from .._exchange.handshake import HandshakeError
from .._job.context import Context, TransferFailed
from .link import Link, LinkLost

_PAUSE = 0.5  # seconds between two attempts to connect


class Streams:
    """Runs ``work(link)`` for every data connection, until ``close``.

    ``work`` returns when its connection has served its purpose and raises LinkLost where it broke. Everything else that
    it raises, and that no connection is left for ``timeout`` seconds, goes to ``failed``.
    """

    def __init__(
        self, context: Context, timeout: float, work: Callable[[Link], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._context, self._timeout, self._work, self._failed = context, timeout, work, failed
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._links: set[Link] = set()
        self._threads: list[threading.Thread] = []
        self._alone_since = time.monotonic()  # when the last connection went
        self._why = "no data connection was made"

    def connect(self, count: int, make: Callable[[int], Link]) -> None:
        """Keep ``count`` connections, numbered from 1, that ``make`` makes (OSError or HandshakeError: not now)."""
        for number in range(1, count + 1):
            self._spawn(self._keep, number, make)

    def attach(self, link: Link) -> None:
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

    def _keep(self, number: int, make: Callable[[int], Link]) -> None:
        while not self._over.is_set():
            try:
                link = make(number)
            except (OSError, HandshakeError) as error:
                self._why = str(error)
            else:
                if self._use(link):
                    return
            self._over.wait(_PAUSE)

    def _use(self, link: Link) -> bool:
        """Work with a connection; says whether it served its purpose."""
        with self._lock:
            self._links.add(link)
        try:
            if self._over.is_set():
                return True
            self._work(link)
            return True
        except LinkLost as error:
            if not self._over.is_set():
                self._context.log(f"{error}; its work goes to the others")
                self._why = str(error)
            return False
        except BaseException as error:
            self._failed(error)
            return True
        finally:
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
                        "place stays: run the task again, it goes on where it stopped"
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
