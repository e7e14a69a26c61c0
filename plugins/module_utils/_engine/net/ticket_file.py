# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tickets in the folder of a job: this end's own, which ``transfer_control`` writes, and the peer's, as it was told.

Every process of an end reads them by itself, at most twice a second. A file that another user can have written is not
read, nor one that is no ticket: what was in force before stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import time
from typing import Callable

from ..._core.json_shape import WrongShape
from ..._model.ticket import FREE, Ticket, combine, parse_ticket

OWN, PEER = "ticket", "peer-ticket"  # names in the job's folder
POLL = 0.5  # seconds between two looks at a file
_MOST = 4096  # bytes


class BadTicket(Exception):
    """The file is not safe to read, or holds no ticket; the text says why."""


def write_ticket(folder: str, name: str, ticket: Ticket) -> None:
    """Replace a ticket in one step; one that says nothing is removed. Raises OSError."""
    path = os.path.join(folder, name)
    if ticket == FREE:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    temporary = f"{path}.{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as stream:
        json.dump(ticket.dump(), stream)
    os.replace(temporary, path)


def read_ticket(folder: str, name: str) -> Ticket:
    """Return a ticket, FREE if there is none; raise BadTicket."""
    try:
        fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return FREE
    except OSError as error:
        raise BadTicket(f"the ticket cannot be read: {error.strerror}") from error
    with os.fdopen(fd, "rb") as stream:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise BadTicket("the ticket is not a file of this user alone (mode 0600)")
        try:
            return parse_ticket(json.loads(stream.read(_MOST)))
        except WrongShape as error:
            raise BadTicket(f"the ticket cannot be read: {error}") from error
        except ValueError as error:  # no JSON
            raise BadTicket(f"the ticket cannot be read: {error}") from error


def _complain(text: str) -> None:
    sys.stderr.write(f"longhaul: {text}; it is ignored\n")


class TicketFile:
    """One of the two tickets, as it was when it could last be read."""

    def __init__(self, folder: str, name: str, complain: Callable[[str], None] = _complain) -> None:
        self._folder, self._name, self._complain = folder, name, complain
        self._version: tuple[int, int, int] | None = None
        self.until = 0.0  # on the monotonic clock: how long what was read last is in force at least
        self._ticket = FREE

    def read(self) -> Ticket:
        """Return it; the file is looked at when the last look was a while ago."""
        now = time.monotonic()
        if now < self.until:
            return self._ticket
        self.until = now + POLL
        try:
            found = os.lstat(os.path.join(self._folder, self._name))
            version = (found.st_ino, found.st_mtime_ns, found.st_size)
        except OSError:
            self._version, self._ticket = None, FREE
            return FREE
        if version != self._version:
            self._version = version
            try:
                self._ticket = read_ticket(self._folder, self._name)
            except BadTicket as refused:
                self._complain(str(refused))
        return self._ticket


class Tickets:
    """What is in force at an end: its own ticket and the peer's together."""

    def __init__(self, folder: str, complain: Callable[[str], None] = _complain) -> None:
        self.own, self.peer = TicketFile(folder, OWN, complain), TicketFile(folder, PEER, complain)
        self._both, self._until = FREE, 0.0

    def read(self) -> Ticket:
        """Return what is in force now; this is asked for with each piece that is sent."""
        if time.monotonic() >= self._until:
            self._both = combine(self.own.read(), self.peer.read())
            self._until = min(self.own.until, self.peer.until)
        return self._both
