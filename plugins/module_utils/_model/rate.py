# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rates in bytes a second: as people write them, and smoothed. Pure."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_RATE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?(?:/s)?\s*$", re.IGNORECASE)


def parse_rate(text: str) -> int:
    """Return the bytes a second that ``50M``, ``1.5GiB``, ``800k/s`` or ``0`` (no limit) stand for; units are binary.

    Raises ValueError with what is accepted.
    """
    match = _RATE.match(text)
    if not match:
        raise ValueError(f"{text!r} is no rate: write bytes a second, such as 50M, 1.5G or 800k (0: no limit)")
    return int(float(match.group(1)) * _UNITS[match.group(2).lower()])


def smoothed(before: float | None, now: float, seconds: float) -> float:
    """Return a rate of which what was a second ago counts half.

    ``before`` is what it was ``seconds`` ago, None if that is not known; ``now`` is the rate since then.
    """
    return now if before is None else now + 0.5**seconds * (before - now)
