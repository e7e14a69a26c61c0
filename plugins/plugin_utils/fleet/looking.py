# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the hosts are asked again how far their jobs are, and which host is asked about a transfer. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

SHARE = 0.05  # of a processor of the control node, at most
SOONEST, LATEST = 1.0, 300.0  # seconds between two looks
GROWTH = 1.5  # of the interval from one look to the next


def next_interval(before: float, spent: float, ended: bool) -> float:
    """Return the seconds until the hosts are asked again.

    ``before`` is the interval so far (0 at first), ``spent`` are the processor seconds that the last look cost, and
    ``ended`` says whether it found a job that had ended. Without that it grows, since what takes long may take longer;
    but never do looks cost more than their share.
    """
    wanted = SOONEST if ended or not before else before * GROWTH
    return max(min(wanted, LATEST), spent / SHARE)


def hosts_to_ask(transfers: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Return which host is asked about which transfers, so that as few hosts as possible are asked.

    ``transfers`` has the hosts that know each one, in the order of preference. One look asks each host once.
    """
    count = Counter(host for hosts in transfers.values() for host in set(hosts))
    asked: dict[str, list[str]] = {}
    for name, hosts in transfers.items():
        asked.setdefault(max(hosts, key=lambda host: count[host]), []).append(name)
    return asked
