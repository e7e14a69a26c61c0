# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drive the jobs of a run: what the conductors of all roles do alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..status import Status
from .asking import threads_for
from .conductor import Conductor, Life
from .keeper import Keeper
from .limits import Limits, Pair, links_of
from .queue import Queue, Waiting

WORDS = (
    "Interrupted. Transfers that run go on, on the hosts, without Ansible. Run the same command again: it attaches to "
    "them, and continues with all jobs"
)


def pair_of(job: Mapping[str, Any], source: str, dest: str, variables: Mapping[str, Any]) -> Pair:
    """Return the hosts of a job and its links; ``variables`` are those of the task."""
    return Pair(source, dest, links_of(job, [variables["hostvars"][name] for name in (source, dest)]))


def drive(
    lives: Mapping[str, Callable[[], Life]],
    jobs: Iterable[Waiting],
    limits: Limits,
    variables: Mapping[str, Any],
    tell: Callable[[Mapping[str, Status]], None],
    keeper: Keeper | None = None,
) -> None:
    """Let all jobs live to their end, under the limits; ``tell`` is called with what is known of running transfers.

    ``keeper`` keeps the leases of the jobs, where they need one.
    """
    queue = Queue(limits)
    for job in jobs:
        queue.add(job)
    threads = min(limits.running, threads_for(int(variables.get("ansible_forks") or 5)))
    Conductor(queue, max(1, threads), tell, keeper).run(lives)
