# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both hosts of a pair, and work on both at once: a step's time is mostly that of its host."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .host_runner import HostRunner


class PairHosts:
    """Both hosts of a job, each with a connection of its own."""

    def __init__(self, source: str, dest: str, runner: Callable[[str], HostRunner]) -> None:
        """Take the names of inventory hosts, and what makes the runner of one. Raises HostFailed."""
        self.runners = {"source": runner(source), "dest": runner(dest)}

    def close(self) -> None:
        """Let go of the connections."""
        for runner in self.runners.values():
            runner.close()


T = TypeVar("T")


def run_parallel(work: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Do the work of all sides at once, and give what each gave, once all have ended.

    Where some raise, the first of them in the mapping's order counts. Each runs in a copy of this thread's context,
    where ansible-core keeps what it knows of the task.
    """
    with ThreadPoolExecutor(len(work), thread_name_prefix="side") as pool:
        begun = {side: pool.submit(contextvars.copy_context().run, do) for side, do in work.items()}
    return {side: future.result() for side, future in begun.items()}
