# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a job that failed is tried again: only after what may pass by itself, and later each time. Pure."""

from __future__ import annotations

DELAYS = (30.0, 120.0, 600.0)  # seconds before the second, third and fourth try


def delay_before(tries: int, may_pass: bool) -> float | None:
    """Return the seconds until the next try, None if there is none.

    ``tries`` is how often the same step of the job has failed, at least 1. ``may_pass``: the cause may be gone later,
    such as a host that could not be reached or a lost connection.
    """
    return DELAYS[tries - 1] if may_pass and tries <= len(DELAYS) else None
