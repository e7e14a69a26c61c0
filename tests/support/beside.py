# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that run on a testbed host beside a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..testbed import Testbed


@contextmanager
def beside(bed: Testbed, host: str, argv: Sequence[str]) -> Iterator[None]:
    """Run a program on a host for the time of a block."""
    before = {process.pid for process in bed.processes(host)}
    outer = bed.popen(host, argv)  # enters the host, and starts the program there as a child
    try:
        yield
    finally:
        for process in bed.processes(host):
            if process.pid not in before and _is(process.argv, argv):
                bed.kill(host, process)
        outer.wait()


def _is(found: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether it is the program, also where it has changed its title (sshd does)."""
    return list(found) == list(argv) or " ".join(argv) in " ".join(found)
