# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Name what held the connections of a transfer back on their way: a window, a buffer, losses, or a full line. Pure.

What Linux counts is described at ``struct tcp_info`` in its include/uapi/linux/tcp.h.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.congestion import CANDIDATE
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.net.tcp_stats import Path
from ansible_collections.longhaul.fleet.plugins.module_utils._model.congestion import NAME

from .diagnosis import FULL, LOSS, ONLY_A_FASTER_LINE, RECEIVE_WINDOW, SEND_BUFFER, percent_text

_STANDS_OUT = 0.25  # of the time in which there was something to send
_FASTER = 4  # times the rate that was seen: what a window should allow if the speed of the interfaces is not known
_MIB = 1 << 20
_LARGEST = 1e15  # of what a host says
_LONGEST_TRIP = 100.0  # seconds, that it may say a round trip takes
_MOST = 8  # names of congestion controls


class LineConditions(NamedTuple):
    """What all connections met, as the source said. Times are seconds."""

    path: Path
    busy: float
    window_limited: float
    buffer_limited: float
    congestion: tuple[str, ...]
    offered: tuple[str, ...]  # congestion controls that the source offers
    found: str = ""  # of those, the one that was found to carry more than the host's own


class Limit(NamedTuple):
    """What held the connections back; both texts are clauses of one sentence."""

    cause: str
    evidence: str
    advice: str


def parse_met(said: object) -> LineConditions | None:
    """Read what a source said (ConnectionTotals); None if there is nothing to read. What is odd counts as not said."""
    if not isinstance(said, Mapping):
        return None
    packets, lost = (int(number_said(said.get(name))) for name in ("packets", "lost"))
    rtt, min_rtt = (min(number_said(said.get(name)), _LONGEST_TRIP) for name in ("rtt", "min_rtt"))
    path = Path(packets, min(lost, packets), rtt, min_rtt)
    busy, window, buffer = (number_said(said.get(name)) for name in ("busy", "window_limited", "buffer_limited"))
    found = CANDIDATE if said.get("found") == CANDIDATE else ""
    return LineConditions(
        path, busy, window, buffer, _names(said.get("congestion")), _names(said.get("offered")), found
    )


def find_limit(met: LineConditions, rate: float, interface: int) -> Limit | None:
    """Return what held the connections back; None if nothing stands out.

    ``rate``: bytes a second that were sent; ``interface``: those that the slower interface carries, 0 if not known.
    """
    path = met.path
    trip = f"at a round trip of {_milliseconds(path.min_rtt)}"
    wanted = math.ceil(2 * path.min_rtt * (interface or _FASTER * rate) / _MIB)
    share = {
        RECEIVE_WINDOW: min(1.0, met.window_limited / met.busy) if met.busy else 0.0,
        SEND_BUFFER: min(1.0, met.buffer_limited / met.busy) if met.busy else 0.0,
    }
    name = max(share, key=lambda one: share[one])
    if path.is_long and share[name] >= _STANDS_OUT:
        side, what, sysctl = _WINDOWS[name]
        return Limit(
            name,
            f"{what} of the {side} was full in {percent_text(share[name])} of the time in which there was something to "
            f"send, {trip}",
            f"raise the third value of the sysctl net.ipv4.{sysctl} at the {side} to {wanted} MiB or more "
            "(role nic: nic_tcp_tuning)",
        )
    if path.packets and path.starves:
        ways = ", ".join(met.congestion) or "the host's congestion control"
        return Limit(
            LOSS,
            f"{100 * path.lost / path.packets:.2f} % of the packets were lost, and none waited in a queue, {trip}, "
            f"with {ways}",
            _about_loss(met),
        )
    if path.is_long and path.queues:
        return Limit(
            FULL,
            f"packets waited in a queue, since a round trip took {_milliseconds(path.rtt)}, and "
            f"{_milliseconds(path.min_rtt)} at its shortest",
            ONLY_A_FASTER_LINE,
        )
    return None


_WINDOWS = {
    RECEIVE_WINDOW: ("destination", "the receive window", "tcp_rmem"),
    SEND_BUFFER: ("source", "the send buffer", "tcp_wmem"),
}


def _about_loss(met: LineConditions) -> str:
    search = "look for what loses packets (a bad cable or radio link, a policer, a small MTU; ethtool -S, mtr)"
    if CANDIDATE in (*met.congestion, *met.offered):
        return search
    return (
        f"{search}, and let the source use the congestion control {CANDIDATE}, which bears losses (modprobe "
        f"tcp_{CANDIDATE}, and the sysctl net.ipv4.tcp_allowed_congestion_control; congestion: auto then uses it)"
    )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def number_said(value: object) -> float:
    """Return a number that a host said, with bounds; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:  # NaN among them
        return 0.0
    return float(min(value, _LARGEST))


def _names(value: object) -> tuple[str, ...]:
    """Return names of congestion controls, without what is none."""
    found = value if isinstance(value, list) else []
    return tuple(one for one in found[:_MOST] if isinstance(one, str) and NAME.fullmatch(one))
