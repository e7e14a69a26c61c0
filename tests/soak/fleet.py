# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A migration of a thousand pairs whose control node is killed again and again, with pairs that cannot be migrated.

Every pair is real: a transfer between two hosts of a testbed, which Ansible reaches by ssh. There are as many names in
the inventory as pairs; those of the sources share some hosts, since each host costs this machine memory. Some have
hooks, which the role runs outside the task that drives all others. At the end every good pair must have been switched
over, with its hooks, and every bad one be named once with its reason; a rerun changes nothing, and nothing is left on
the hosts.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.control_node import Sampler, adopt_orphans, used_here
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

from .scale import Say, Unexpected, expect

KILLS = 20
_SOURCES, _DESTS = 8, 20  # hosts
_FILES = 5  # of each tree
_LATER = 5.0  # seconds, at most: a kill comes after so many pairs, and up to so much later
_LAST = 10  # so many good pairs are left at least when a kill comes
_LOOK_SECONDS = 0.5
_LIMITS = {"running": 30, "per_dest": 3}
_JOB = re.compile("[0-9a-f]{16}")  # the folder of a job
_MOST_LINES = 4000
_MOST_PROCESSES = 50
_MOST_MEMORY = 1 << 30


class Bad(NamedTuple):
    """A reason why a pair cannot be migrated: what differs from a good one, and what must be said of it."""

    name: str
    said: str  # a pattern
    job: dict[str, Any] = {}
    source: dict[str, Any] = {}  # variables


BAD = (
    Bad("unreachable", "Connection refused", source={"ansible_port": 9}),
    Bad("no-python", "name the Python of this host", source={"ansible_python_interpreter": "/no/python"}),
    Bad("no-source", "/data/nothing/ does not exist", job={"src": "/data/nothing/"}),
    Bad("in-a-file", "/data/a-file is a file where a directory is needed", job={"dest": "/data/a-file/tree"}),
    Bad("no-room", "Make room, or choose another destination", job={"dest": "/data/small/tree"}),
)
_BAD_OF_EACH = 2
_HOOKED = 20  # of so many good pairs, one has hooks


class Fleet:
    """The pairs, and the hosts that they are on."""

    def __init__(self, bed: Testbed, folder: Path, pairs: int) -> None:
        """Write the inventory and the trees."""
        self.bed = bed
        self.bad = {f"{bad.name}-{number}": bad for bad in BAD for number in range(_BAD_OF_EACH)}
        names = [*self.bad, *(f"tree{number:05}" for number in range(pairs - len(self.bad)))]
        self._hooked = set(names[len(self.bad) :: _HOOKED])
        random.Random(pairs).shuffle(names)
        inventory = bed.inventory(folder / "hosts.yml")
        written = json.loads(inventory.read_text(encoding="utf-8"))
        hosts = written["all"]["hosts"]
        self.jobs: list[dict[str, Any]] = []
        self._places: dict[str, tuple[str, str]] = {}
        for number, name in enumerate(names):
            source, dest = f"source{number % _SOURCES}", f"dest{number % _DESTS}"
            bad = self.bad.get(name, Bad("", ""))
            hosts[f"old-{name}"] = {**hosts[source], **bad.source}
            ends = {"src_host": f"old-{name}", "src": f"/data/{name}/", "dest_host": dest, "dest": f"/data/{name}"}
            hooks = _hooks(name) if name in self._hooked else {}
            self.jobs.append({"name": name, **ends, **hooks, **bad.job})
            self._places[name] = source, dest
        inventory.write_text(json.dumps(written), encoding="utf-8")
        self.playbooks = Playbooks(inventory, folder / "runs", collections_folder())
        self.state = folder / "longhaul-migrate"

    def fill(self) -> None:
        """Make the trees of all pairs, and what the bad ones meet at their destinations."""
        for name, (source, _dest) in self._places.items():
            tree = self.bed.root(source) / "data" / name
            (tree / "folder").mkdir(parents=True)
            for number in range(_FILES):
                (tree / f"folder/file{number}").write_bytes(os.urandom(10_000 * number))
            if name.startswith("no-room"):
                (tree / "large").write_bytes(bytes(4 << 20))
        for dest in self.bed.hosts:
            (self.bed.root(dest) / "data/a-file").write_text("no folder")
            self.bed.exec(dest, ["mkdir", "/data/small"])
            self.bed.exec(dest, ["mount", "-t", "tmpfs", "-o", "size=1m", "none", "/data/small"])

    def reported(self) -> int:
        """Return how many jobs have a report."""
        return sum(1 for name in self._places if (self.state / f"{name}.json").exists())

    def differing(self) -> list[str]:
        """Return the good pairs whose trees are not the same."""
        return [
            name
            for name, (source, dest) in self._places.items()
            if name not in self.bad
            and differences(self.bed.root(source) / "data" / name, self.bed.root(dest) / "data" / name)
        ]

    def not_switched(self) -> list[str]:
        """Return the good pairs that the control node does not know to have been switched over."""
        found = []
        for name in self._places:
            if name not in self.bad:
                report = json.loads((self.state / f"{name}.json").read_text(encoding="utf-8"))
                found += [] if report["switch"].get("done") else [name]
        return found

    def wrong_hooks(self, kills: int) -> list[str]:
        """Return the good pairs whose hooks did not run, or not in their order, or again without a kill."""
        found, repeated = [], []
        for name in sorted(self._hooked):
            source, dest = (self.bed.root(host) / f"data/log-{name}" for host in self._places[name])
            state = json.loads((self.state / f"state/{name}.json").read_text(encoding="utf-8"))
            last = [(hook["kind"], hook["result"]) for hook in state.get("hooks", [])][-2:]
            ran = [one.read_text().split() if one.exists() else [] for one in (source, dest)]
            in_order = last == [("before_cutover", "done"), ("after_cutover", "done")]
            found += [] if in_order and list(map(set, ran)) == [{"stop"}, {"start"}] else [f"{name}: {last}, {ran}"]
            repeated += [f"{name}: {ran}"] if len(ran[1]) > 1 else []
        # A kill between the end of a hook and its record has it run again.
        return found + (repeated if len(repeated) > kills else [])

    def left(self) -> list[str]:
        """Return what is left: folders of transfers on the hosts, processes there, and workers of killed runs here."""
        inventory = str(self.playbooks.inventory).encode()
        found = [f"{one}" for one in Path("/proc").glob("[0-9]*/cmdline") if inventory in _read(one)]
        for host in self.bed.hosts:
            root = self.bed.root(host)
            found += [f"{host}: {path}" for path in root.glob("var/lib/longhaul/*") if _JOB.fullmatch(path.name)]
            found += [f"{host}: {path}" for path in root.glob("data/**/.longhaul-*")]
            for process in root.glob("proc/[0-9]*/cmdline"):
                said = _read(process).replace(b"\0", b" ").decode(errors="replace")
                found += [f"{host}: {said}"] if "engine" in said and ".pyz" in said else []
        return found


def _hooks(name: str) -> dict[str, Any]:
    """Return hooks that write down that they run."""

    def hook(host: str, word: str) -> dict[str, Any]:
        return {"name": word, "host": host, "command": ["/bin/sh", "-c", f"echo {word} >> /data/log-{name}"]}

    return {"before_cutover": [hook("source", "stop")], "after_cutover": [hook("dest", "start")]}


def _read(process: Path) -> bytes:
    """Return the arguments of a process; nothing if it is gone."""
    try:
        return process.read_bytes()
    except OSError:
        return b""


def run(pairs: int, kills: int, seed: int, say: Say) -> None:
    """Migrate so many pairs, and kill the control node so often. Raises Unexpected."""
    adopt_orphans()
    chance = random.Random(seed)
    names = [*(f"source{number}" for number in range(_SOURCES)), *(f"dest{number}" for number in range(_DESTS))]
    with Testbed(names, data_size="2g") as bed, tempfile.TemporaryDirectory() as folder, Sampler() as sampler:
        fleet = Fleet(bed, Path(folder), pairs)
        fleet.fill()
        say(f"fleet: {pairs} pairs, {len(fleet.bad)} of them bad, on {len(names)} hosts; seed {seed}")
        begun, used = time.monotonic(), used_here()
        lines = []
        for ended in sorted(chance.randrange(pairs - len(fleet.bad) - _LAST) for _number in range(kills)):
            lines.append(_start_and_kill(fleet, sampler, ended, chance.uniform(0, _LATER), say))
        last = _run(fleet, sampler)
        seconds, used = time.monotonic() - begun, used_here() - used
        lines.append(last.output.count("\n"))
        say(
            f"fleet: {kills} kills, {seconds:.0f} s; {used / pairs:.2f} processor seconds of the control node a pair; "
            f"at most {sampler.processes} processes and {sampler.memory >> 20} MiB; {lines[-1]} lines in the last run, "
            f"{sum(lines)} in all"
        )
        _check(fleet, last, kills)
        used = used_here()
        again = _run(fleet, sampler)
        used, printed = used_here() - used, again.output.count("\n")
        say(f"fleet: a rerun: {used / pairs:.2f} processor seconds a pair, {printed} lines")
        expect(_changed(again) == 0, f"the rerun changed something:\n{again.output[-4000:]}")
        _check(fleet, again, kills)
        expect(max(lines) <= _MOST_LINES, f"a run printed {max(lines)} lines")
        expect(sampler.processes <= _MOST_PROCESSES, f"there were {sampler.processes} processes")
        expect(sampler.memory <= _MOST_MEMORY, f"they took {sampler.memory >> 20} MiB")


def _start_and_kill(fleet: Fleet, sampler: Sampler, ended: int, later: float, say: Say) -> int:
    """Kill a run so many seconds after so many jobs have a report; return how many lines it printed."""
    running = _start(fleet, sampler)
    begun = time.monotonic()
    while running.process.poll() is None and fleet.reported() < ended:
        time.sleep(_LOOK_SECONDS)
    try:
        rc = running.process.wait(later)
    except subprocess.TimeoutExpired:
        running.kill()
        running.process.wait()
    else:
        raise Unexpected(f"a run ended with {rc} before it could be killed:\n{running.output[-4000:]}")
    say(f"fleet: killed after {time.monotonic() - begun:.0f} s; {fleet.reported()} jobs have a report")
    return running.output.count("\n")


def _run(fleet: Fleet, sampler: Sampler) -> Run:
    return _start(fleet, sampler).wait(7200)


def _start(fleet: Fleet, sampler: Sampler) -> Any:
    running = fleet.playbooks.start(
        "longhaul.fleet.migrate", migrate_jobs=fleet.jobs, migrate_phase="cutover", fleet_limits=_LIMITS
    )
    sampler.root = running.process.pid
    return running


def _check(fleet: Fleet, last: Run, kills: int) -> None:
    """Check the pairs, what was said of them, and what is left."""
    expect(last.rc, "no failure was reported")
    end = last.output.rpartition("TASK [")[2]
    said = re.split(r"\n(?=\S+ stopped in phase |\[ERROR\]|fatal: )", end)
    for name, bad in fleet.bad.items():
        about = [one for one in said if one.startswith(f"{name} stopped in phase ")]
        expect(len(about) == 1 and re.search(bad.said, about[0]), f"{name}, not once with {bad.said!r}: {about}")
    total = len(fleet.jobs)
    expect(f"{len(fleet.bad)} of {total} jobs failed" in end, f"other jobs failed, too:\n{end}")
    differing, waiting, left = fleet.differing(), fleet.not_switched(), fleet.left()
    expect(not differing, f"{len(differing)} pairs differ: {differing[:5]}")
    expect(not waiting, f"{len(waiting)} pairs are not switched over: {waiting[:5]}")
    wrong = fleet.wrong_hooks(kills)
    expect(not wrong, f"the hooks of {len(wrong)} pairs are wrong: {wrong[:5]}")
    expect(not left, f"{len(left)} things are left: {left[:10]}")


def _changed(run_: Run) -> int:
    """Return how many changes the recap counts."""
    return sum(map(int, re.findall(r"changed=(\d+)", run_.output.rpartition("PLAY RECAP")[2])))
