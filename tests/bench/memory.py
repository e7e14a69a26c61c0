# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the machine's memory where it is while something is measured.

A guest may give what it has free back to its hypervisor after some seconds, and to get it again costs several times as
much as to fill it. A program that starts at once after its predecessor's tree was removed finds the memory there; a
transfer that Ansible starts three seconds later would pay for it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

_ORDER = Path("/sys/module/page_reporting/parameters/page_reporting_order")
_NEVER = "11\n"  # no free stretch of memory is as long as 2^11 pages


@contextlib.contextmanager
def kept(size: int) -> Iterator[None]:
    """Let the kernel give nothing back for the time of a block, and touch so many bytes beforehand.

    Does nothing if the kernel gives nothing back anyway, or does not let itself be asked.
    """
    try:
        before = _ORDER.read_text()
        _ORDER.write_text(_NEVER)
    except OSError:
        yield
        return
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE
        with mmap.mmap(-1, min(size, free // 2)) as memory:
            for start in range(0, len(memory), mmap.PAGESIZE):
                memory[start] = 1
        yield
    finally:
        _ORDER.write_text(before)
