# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two hosts of a job."""

from __future__ import annotations

from collections.abc import Callable

from ..host_runner import HostRunner


class PairHosts:
    """Both hosts of a job, each with a connection of its own."""

    def __init__(self, source: str, dest: str, runner: Callable[[str], HostRunner]) -> None:
        """Take the names of inventory hosts, and what makes the runner of one. Raises HostFailed."""
        self.runners = {"source": runner(source), "dest": runner(dest)}

    def close(self) -> None:
        """Let go of the connections."""
        for runner in self.runners.values():
            runner.close()
