# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rates that change from one look to the next. Pure."""

from __future__ import annotations


def smoothed(before: float | None, now: float, seconds: float) -> float:
    """Return a rate of which what was a second ago counts half.

    ``before`` is what it was ``seconds`` ago, None if that is not known; ``now`` is the rate since then.
    """
    return now if before is None else now + 0.5**seconds * (before - now)
