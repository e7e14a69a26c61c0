# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ticket: what a running transfer is told to do from outside. Pure.

``rate`` is a limit in bytes a second: None for the transfer's own (``bwlimit``), 0 for no limit.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from .._core.json_shape import WrongShape, as_object, member, optional

MAX_RATE = 1 << 50  # bytes a second
PAUSED = "the transfer was paused for longer than its timeout"


class Ticket(NamedTuple):
    """Whether a transfer pauses, whether it ends, and how fast it may be."""

    paused: bool = False
    cancelled: bool = False
    rate: int | None = None

    def dump(self) -> Mapping[str, object]:
        """Return plain data, which ``parse_ticket`` reads."""
        return dict(self._asdict())

    def limit(self, own: int) -> int:
        """Return the limit in force for a transfer whose own is ``own``; 0 for none."""
        return own if self.rate is None else self.rate


FREE = Ticket()  # of a transfer that was told nothing


def parse_ticket(value: object) -> Ticket:
    """Return a ticket that was read from JSON; raise WrongShape for what is none, or holds more than a ticket."""
    values = as_object(value, "a ticket")
    strange = sorted(set(values) - set(Ticket._fields))
    if strange:
        raise WrongShape(f"a ticket has no member {strange[0][:60]!r}")
    rate = optional(values, "rate", int)
    if rate is not None and not 0 <= rate <= MAX_RATE:
        raise WrongShape(f"rate is {rate}, and 0 to {MAX_RATE} bytes a second are expected")
    return Ticket(member(values, "paused", bool), member(values, "cancelled", bool), rate)


def paused_too_long(timeout: float) -> str:
    """Return why a transfer ended that was paused for so many seconds."""
    return f"{PAUSED} ({timeout:.0f} seconds), so it ended. What has arrived is kept: run the task again to resume"


def combine(one: Ticket, other: Ticket) -> Ticket:
    """Return what is in force where each end has a ticket: either pauses or ends both, and the lower limit counts."""
    rates = [ticket.rate for ticket in (one, other) if ticket.rate is not None]
    limits = [rate for rate in rates if rate]
    rate = min(limits) if limits else (0 if rates else None)
    return Ticket(one.paused or other.paused, one.cancelled or other.cancelled, rate)
