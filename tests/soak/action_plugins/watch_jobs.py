# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An action that waits for transfers which run on hosts, as the actions of migrate and backup do.

Its argument ``jobs`` is a list of what ``watch.Job`` has.
"""

from __future__ import annotations

import time
from collections import defaultdict
from functools import partial
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.console import Activity, ProgressPrinter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import Limits, Pair
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.lock import Lease, Terms
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.lock_renewal import LeaseRenewer
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.polling import Watch
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_file import ProgressWriter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.queue import Waiting, rank
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.scheduler import Scheduler, Workflow, threads_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostRunner
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.session import Place

_PATIENCE = 300.0  # seconds, as of a transfer by default


class ActionModule(ActionBase):
    """See above."""

    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:  # noqa: ARG002 - Ansible's
        """Wait until all jobs have ended."""
        jobs = self._task.args["jobs"]
        runner = partial(HostRunner, self, task_vars=task_vars)
        keeper = LeaseRenewer(runner)
        for job, lease in _take_leases(jobs, runner):
            keeper.add(job, lease)
        say = Display().display
        say("all transfers are watched from now on")
        teller = ProgressPrinter(say, time.monotonic, len(jobs), lambda _name: Activity("seed"), ProgressWriter())
        lives = {job["name"]: partial(_live, job, runner, keeper, teller) for job in jobs}
        waiting = [
            Waiting(rank(0, 0.0, number), job["name"], Pair(job["source"], job["dest"]))
            for number, job in enumerate(jobs)
        ]
        limits = Limits(running=len(jobs), per_source=len(jobs), per_dest=len(jobs))
        try:
            Scheduler(limits, threads_of(limits, task_vars), teller.progress, keeper).run(waiting, lives)
        finally:
            keeper.close()
            teller.close()
        return {"changed": False}


def _take_leases(jobs: list[dict[str, str]], runner: Any) -> list[tuple[str, Lease]]:
    """Take the leases of all jobs, with one execution at each destination."""
    of_host = defaultdict(list)
    for job in jobs:
        terms = Terms(job["name"], job["dest"], job["id"], "0123456789abcdef", "a test")
        of_host[job["dest"]].append((job["name"], Lease(terms)))
    for host, leases in of_host.items():
        sent = leases[0][1].now()
        for (name, lease), said in zip(leases, runner(host).run(*(lease.request() for _name, lease in leases))):
            problem = lease.take(said, sent)
            if problem or not lease.is_kept:
                raise ValueError(f"{name}: {problem or lease.lost}")
    return [one for leases in of_host.values() for one in leases]


def _live(job: dict[str, str], runner: Any, keeper: LeaseRenewer, teller: ProgressPrinter) -> Workflow:
    places = [Place(runner(job[side]), {"id": job["id"], "side": side}, side == "dest") for side in ("dest", "source")]
    status = yield Watch(tuple(places), _PATIENCE)
    keeper.release(job["name"])
    teller.ended(status.state != "finished")
