# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What earlier transfers found out about the line between two hosts, so that the next one begins with it.

How many connections pay, and whether BBR carries more, takes a transfer some seconds to find; on a long line these are
many round trips. A short line is found at once, and nothing is kept of it. After some days a line is looked at again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.congestion import CANDIDATE
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_info import LONG_RTT

from .tcp_limits import LineConditions, number_said

if TYPE_CHECKING:
    from ..common.memory import Memory

_KIND = "line"
_DAYS = 7  # in which it counts
_TELLING = 1000  # packets: a transfer of fewer finds out nothing


class KnownLine(NamedTuple):
    """``streams``: the connections that paid, 0 if not known; ``congestion``: what carried more, empty: nothing did."""

    streams: int = 0
    congestion: str = ""


UNKNOWN = KnownLine()


def recall_line(memory: Memory, hosts: tuple[str, str]) -> KnownLine:
    """Return what is known of the line from the source to the destination."""
    record = memory.recall(_KIND, hosts)
    age = time.time() - number_said(record.get("at"))
    if not 0 <= age < _DAYS * 86400:
        return UNKNOWN
    streams = int(number_said(record.get("streams")))
    return KnownLine(streams, CANDIDATE if record.get("congestion") == CANDIDATE else "")


def keep_line(
    memory: Memory, hosts: tuple[str, str], known: KnownLine, met: LineConditions | None, streams: int
) -> None:
    """Keep what a transfer, which began with what was ``known``, met, and how many connections it had in the end.

    What it began with does not become younger by that.
    """
    if met is None or met.path.packets < _TELLING:
        return
    found = learnt(met, streams)
    if found == UNKNOWN or found != known:
        record = {**found._asdict(), "at": int(time.time())}
        memory.keep(_KIND, hosts, record if found != UNKNOWN else {})


def keep_measured_line(memory: Memory, hosts: tuple[str, str], streams: int, round_trip: float) -> None:
    """Keep how many connections carried most on a long line in a benchmark, unless a transfer has found that out."""
    if round_trip >= LONG_RTT and streams > 1 and recall_line(memory, hosts) == UNKNOWN:
        memory.keep(_KIND, hosts, {**KnownLine(streams)._asdict(), "at": int(time.time())})


def learnt(met: LineConditions, streams: int) -> KnownLine:
    """Return what a transfer found out. Pure."""
    if not met.path.is_long:
        return UNKNOWN
    return KnownLine(max(1, streams), met.found)
