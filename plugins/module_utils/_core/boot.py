# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The id of the current boot of this system, and the seconds since it began."""

from __future__ import annotations

import contextlib
import time


def boot_id() -> str:
    """Return the id of this boot, which Linux has; empty if there is none."""
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read(64).strip()
    return ""


def boot_seconds() -> float:
    """Return the time of a clock that begins with the boot and also runs while the system sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
