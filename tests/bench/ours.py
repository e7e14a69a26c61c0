# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection's own tasks, run by ansible-playbook as users run them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.tests.bench.job_time import JobTime
from ansible_collections.longhaul.fleet.tests.bench.measuring import Sample
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run, Running
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

TRANSFERS: dict[str, dict[str, Any]] = {  # the options of each tool
    "transfer stream TLS": {"method": "stream"},
    "transfer stream plain": {"method": "stream", "encryption": "none"},
    "transfer rsync": {"method": "rsync"},
    "transfer rsyncd": {"method": "rsyncd", "encryption": "none"},
    "transfer tar_nc": {"method": "tar_nc", "encryption": "none"},
    "transfer scp": {"method": "scp"},
    "transfer sftp": {"method": "sftp"},
}
STREAMS = ("transfer stream TLS", "transfer stream plain")  # of these, the engine of our own
REPOSITORY = {"repository": "/data/backup", "host": "alpha", "job": "bench"}
_OVER_THE_LAST = {"delete": True, "link_dest": "{{ begin.link_dest }}"}
_NOW = "{{ lookup('pipe', 'date +%s.%N') }}"


class Ours:
    """Runs the collection's tasks against the hosts of a testbed.

    ``collections`` is the folder with ``ansible_collections`` in which another version of the collection is installed.
    """

    def __init__(self, bed: Testbed, folder: Path, collections: Path | None = None) -> None:
        self._bed = bed
        folder.mkdir(exist_ok=True)
        inventory = bed.inventory(folder / "inventory.yml", extra={"ansible_pipelining": True})
        self._playbooks = Playbooks(inventory, folder, collections or collections_folder())

    def start(self, tree: str, **options: Any) -> Running:
        """Start a transfer of ``/data/<tree>`` on alpha into ``/data/out`` on beta."""
        return self._playbooks.start([_transfer(f"/data/{tree}/", "/data/out/", options)], hosts="alpha")

    def run(self, tree: str, **options: Any) -> Sample:
        """Transfer ``/data/<tree>``.

        ``seconds`` are those of the job that connects; ``phase`` includes the Ansible module that starts it, and
        ``task`` all that the task does. ``processor`` are the processor seconds of both jobs and their programs. With
        ``sync`` and without a comparison, those of ``sync`` and ``finish`` are there, too.
        """
        with JobTime(self._bed) as job:
            ended = self.start(tree, **options).wait(3600).expect_success()
        result = ended.result("Transfer")
        used = sum(result["bottleneck"][side]["processor"] for side in ("source", "dest"))
        phase, task = result["phases"]["transfer"], result["duration"]
        found = {"seconds": job.seconds, "phase": phase, "task": task, "processor": used}
        if "sync" in result["phases"]:
            found.update({name: result["phases"][name] for name in ("finish", "sync")})
        return found

    def backup(self, tree: str) -> Sample:
        """Make a snapshot of ``/data/<tree>``; ``finish`` are the seconds of the task that makes it complete."""
        run = str(time.time_ns())
        tasks = [
            _stamp("Begun"),
            _snapshot("Begin", action="begin", run=run),
            {**_transfer(f"/data/{tree}/", "{{ begin.path }}", _OVER_THE_LAST), "register": "transferred"},
            _stamp("Transferred"),
            _snapshot(
                "Finish",
                action="finish",
                run=run,
                expected_entries="{{ transferred.files_total }}",
                expected_bytes="{{ transferred.bytes_apparent }}",
            ),
            _stamp("Ended"),
        ]
        ended = self._playbooks.run(tasks, hosts="beta", timeout=3600).expect_success()
        begun, transferred, over = (_when(ended, name) for name in ("Begun", "Transferred", "Ended"))
        transfer = ended.result("Transfer")["phases"]["transfer"]
        return {"seconds": over - begun, "transfer": transfer, "finish": over - transferred}

    def prune(self, keep: int) -> Sample:
        """Prune the repository so that this many snapshots are kept."""
        tasks = [_stamp("Begun"), _snapshot("Prune", action="prune", keep={"last": keep}), _stamp("Ended")]
        ended = self._playbooks.run(tasks, hosts="beta", timeout=3600).expect_success()
        if not ended.result("Prune")["changed"]:
            raise RuntimeError("nothing was pruned")
        return {"seconds": _when(ended, "Ended") - _when(ended, "Begun")}

    def backup_by_playbook(self, source: str, repository: str) -> None:
        """Back up a folder of alpha to beta, as a scheduled run does."""
        self._playbook("longhaul.fleet.backup", source, repository)

    def restore_by_playbook(self, source: str, repository: str, path: str, dest: str) -> None:
        """Restore one path of the last backup into a folder of alpha."""
        found = {"restore_from": "alpha", "restore_path": path, "restore_dest": dest}
        self._playbook("longhaul.fleet.restore", source, repository, **found)

    def prune_of_playbook(self, repository: str, keep: int) -> None:
        """Prune what the playbook backup made, so that this many snapshots are kept."""
        where = {"repository": repository, "host": "alpha", "job": "days"}
        tasks = [{"longhaul.fleet.snapshot": {**where, "action": "prune", "keep": {"last": keep}}}]
        self._playbooks.run(tasks, hosts="beta", timeout=3600).expect_success()

    def _playbook(self, name: str, source: str, repository: str, **variables: Any) -> None:
        job = {"name": "days", "host": "alpha", "src": source, "repository": {"host": "beta", "path": repository}}
        job["keep"] = {"last": 100}
        self._playbooks.run(name, timeout=3600, backup_jobs=[job], **variables).expect_success()

    def end(self) -> None:
        """Kill what is left running."""
        self._playbooks.end()


def _transfer(src: str, dest: str, options: dict[str, Any]) -> dict[str, Any]:
    ends = {"src_host": "alpha", "src": src, "dest_host": "beta", "dest": dest}
    return {"name": "Transfer", "longhaul.fleet.transfer": {**ends, **options}}


def _snapshot(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "longhaul.fleet.snapshot": {**REPOSITORY, **options}, "register": name.lower()}


def _stamp(name: str) -> dict[str, Any]:
    return {"name": name, "ansible.builtin.set_fact": {"now": _NOW}}


def _when(ended: Run, name: str) -> float:
    return float(ended.result(name)["ansible_facts"]["now"])
