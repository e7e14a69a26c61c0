# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What it costs a control node to wait for a thousand transfers that run.

The loop, the leases, the looks and what is printed are those of a migration, and the hosts are asked by real ssh. What
runs there is simulated: a job that only keeps its lock and its status (``standing_jobs``), since a thousand real ones
do not fit into this machine's memory. The hosts' names are shared by some hosts, for the same reason.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.control_node import Sampler, adopt_orphans, used_by
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

from . import standing_jobs
from .scale import Say, expect

MINUTES = 10
_HOSTS = 20
_CODE = "/data/code"  # on the hosts
_BEGINNING = 600.0  # seconds until all are watched, at most
_END = 900.0  # the same for their end
_MOST_SECONDS = 0.02  # of a processor, a pair and minute, of so many pairs
_MANY = 1000
_MOST_LINES = 4000
_MOST_PROCESSES = 50
_MOST_MEMORY = 1 << 30
_WATCHED = "all transfers are watched"


class Job(TypedDict):
    """A transfer that runs: the name of its job, its id, and its hosts as the inventory has them."""

    name: str
    id: str
    source: str
    dest: str


class Cost(NamedTuple):
    """What it cost to wait: processor seconds of the control node a pair and minute, and the most that was there."""

    seconds: float
    processes: int
    memory: int
    lines: int


def run(pairs: int, minutes: float, say: Say) -> None:
    """Wait for so many pairs for so long: first over a few destinations, then each with its own. Raises Unexpected."""
    adopt_orphans()
    for dests in dict.fromkeys((min(_HOSTS, pairs), pairs)):
        cost = _wait(pairs, dests, minutes)
        say(
            f"watch: {pairs} transfers over {dests} destinations, {minutes:g} minutes: {cost.seconds:.4f} processor "
            f"seconds of the control node a pair and minute; at most {cost.processes} processes and "
            f"{cost.memory >> 20} MiB; {cost.lines} lines"
        )
        if dests > _HOSTS:  # no more than a figure: the looks have their bound, and each destination renews a lease
            continue
        expect(cost.seconds * pairs <= _MOST_SECONDS * max(pairs, _MANY), "that is too much time")
        expect(cost.processes <= _MOST_PROCESSES and cost.memory <= _MOST_MEMORY, "these are too many, or too large")
        expect(cost.lines <= _MOST_LINES, "these are too many lines")


def _wait(pairs: int, dests: int, minutes: float) -> Cost:
    names = [f"host{number:02}" for number in range(min(_HOSTS, pairs))]
    with Testbed(names, data_size="64m") as bed, tempfile.TemporaryDirectory() as made, Sampler() as sampler:
        folder = Path(made)
        jobs = _begin(bed, pairs, dests)
        playbooks = Playbooks(_inventory(bed, jobs, folder), folder / "runs", collections_folder())
        running = playbooks.start(_playbook(folder, jobs))
        sampler.root = running.process.pid
        wait_for(lambda: _WATCHED in running.output or running.process.poll() is not None, seconds=_BEGINNING)
        begun, used = time.monotonic(), used_by(running.process.pid)
        while time.monotonic() < begun + 60 * minutes and running.process.poll() is None:
            time.sleep(1)
        passed, used = (time.monotonic() - begun) / 60, used_by(running.process.pid) - used
        expect(running.process.poll() is None, f"it ended at once:\n{running.output[-4000:]}")
        if dests <= len(names):  # with more, looks are too rare to wait for their end
            for name in names:
                (bed.root(name) / standing_jobs.END.lstrip("/")).touch()
            expect(running.wait(_END).rc == 0, f"it failed:\n{running.output[-4000:]}")
        lines = running.output.count("\n")
        playbooks.end()
        return Cost(used / passed / pairs, sampler.processes, sampler.memory, lines)


def _begin(bed: Testbed, pairs: int, dests: int) -> list[Job]:
    """Start the jobs on the hosts, and return them once they run."""
    jobs: list[Job] = []
    started = []
    for number, host in enumerate(bed.hosts):
        count = len(range(number, pairs, len(bed.hosts)))
        argv = ["env", f"PYTHONPATH={_CODE}", "python3", _put_code(bed, host), f"{number:x}", str(count)]
        started.append(bed.popen(host, argv, stdin=subprocess.DEVNULL))
        for index in range(count):
            name = f"{host}-{index:04}"
            transfer_id = standing_jobs.identity(f"{number:x}", index)
            dest = f"new-{name}" if dests > len(bed.hosts) else host
            jobs.append({"name": name, "id": transfer_id, "source": f"old-{name}", "dest": dest})
    wait_for(lambda: _reports(bed) == pairs or any(one.poll() is not None for one in started), seconds=120)
    expect(all(one.poll() is None for one in started), "a job ended at once")
    return jobs


def _put_code(bed: Testbed, host: str) -> str:
    """Put what the jobs need onto a host, which may not see this repository; return the path of their program."""
    place = bed.root(host) / _CODE.lstrip("/")
    code = Path("ansible_collections/longhaul/fleet/plugins/module_utils")
    shutil.copytree(collections_folder() / code, place / code, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(standing_jobs.__file__, place)
    return f"{_CODE}/{Path(standing_jobs.__file__).name}"


def _reports(bed: Testbed) -> int:
    return sum(len(list(bed.root(host).glob("var/lib/longhaul/*/dest/status.json"))) for host in bed.hosts)


def _inventory(bed: Testbed, jobs: list[Job], folder: Path) -> Path:
    """Write an inventory with all names."""
    inventory = bed.inventory(folder / "hosts.yml")
    written = json.loads(inventory.read_text(encoding="utf-8"))
    hosts: dict[str, Any] = written["all"]["hosts"]
    for job in jobs:
        shared = hosts[job["name"].partition("-")[0]]
        hosts[job["source"]] = shared
        hosts.setdefault(job["dest"], shared)
    inventory.write_text(json.dumps(written), encoding="utf-8")
    return inventory


def _playbook(folder: Path, jobs: list[Job]) -> str:
    """Write the playbook with its action beside it, and return its path."""
    shutil.copytree(Path(__file__).with_name("action_plugins"), folder / "action_plugins")
    tasks = [{"name": "Wait", "watch_jobs": {"jobs": jobs}}]
    path = folder / "playbook.yml"
    path.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    return str(path)
