# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a running job does with its tickets: it pauses or slows its programs, ends, and says what is in force."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Callable, Iterator

from .._core.context import Context
from .._engine.net.ticket_file import POLL, Tickets
from .._model.ticket import Ticket, paused_too_long
from .governor import PROGRAMS, Governor, can_count

_PEER_LEARNS = 2 * POLL  # seconds until the peer knows of a ticket, where the method tells it


class Control:
    """Obeys the tickets of a job until ``close``. ``report`` takes what the status should say, where that changes."""

    def __init__(self, context: Context, report: Callable[..., None]) -> None:
        self._context, self._report = context, report
        self._tickets = Tickets(context.folder, context.log)
        self._own_limit = int(context.settings["bwlimit"])
        self._timeout = float(context.settings["timeout"])
        self._governor: Governor | None = None
        program = PROGRAMS.get(context.settings["method"])
        if program:
            self._governor = Governor(program)
        if program and can_count():
            # The programs get no limit of their own, which nobody could raise while they run.
            self._governed_limit = self._own_limit if context.part == "drive" else 0
            context.settings = {**context.settings, "bwlimit": 0}
        else:
            self._governed_limit = 0
        self._over = threading.Event()
        self.failure = ""  # why the job ended, where the ticket ended it
        self._thread = threading.Thread(target=self._run, daemon=True, name="control")

    def _run(self) -> None:
        said, paused_since, cancelled_at = None, 0.0, 0.0
        while not self._over.is_set() and not self._context.stop.is_set():
            own, ticket = self._tickets.own.read(), self._tickets.read()
            now = time.monotonic()
            paused_since = (paused_since or now) if ticket.paused else 0.0
            cancelled_at = (cancelled_at or now) if ticket.cancelled else 0.0
            if (own, ticket) != said:
                self._govern(ticket, lambda _seconds: None)  # in force before it is reported
                said = own, ticket
                self._report(ticket=own.dump(), paused=ticket.paused, bwlimit=ticket.limit(self._own_limit))
            if paused_since and now - paused_since > self._timeout:
                self.failure = paused_too_long(self._timeout)
                self._context.last_words = self.failure
                self._context.stop.set()
            elif cancelled_at and now - cancelled_at >= _PEER_LEARNS:
                self._context.stop.set()
            else:
                self._govern(ticket, self._over.wait)
        if self._governor is not None:
            self._governor.release()  # what is stopped cannot end

    def _govern(self, ticket: Ticket, wait: Callable[[float], object]) -> None:
        if self._governor is None:
            wait(POLL)
            return
        try:
            self._governor.step(ticket.paused, ticket.limit(self._governed_limit), wait, POLL)
        except OSError as error:  # no process can be started, or the like
            self._context.log(f"the programs cannot be held back: {error.strerror}")
            self._over.wait(POLL)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop obeying; all programs may run."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()


@contextlib.contextmanager
def obey_tickets(context: Context, report: Callable[..., None]) -> Iterator[Control]:
    """Obey the tickets of a job until this is left, from ``Control.start`` on: a job confines itself before."""
    control = Control(context, report)
    try:
        yield control
    finally:
        control.close()
