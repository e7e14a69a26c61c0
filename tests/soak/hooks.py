# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migrations with hooks of all kinds whose control node is killed at any time, and run again.

Each run is killed, and a rerun must succeed. It has jobs alone and in groups of two, all with files of tasks among
their hooks, or all without; each job or group that is under way when the kill comes is a sequence. A kill comes at
random among what a run prints and records, however long that takes. Each run of a hook makes a file of its own, so
that these count: hooks of ``before_cutover`` run again, all in their order, unless the switch had begun; of
``after_cutover``, only those whose end was not recorded.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.die_with_parent import descendants
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run, Running
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

from .scale import Say, Unexpected, expect

WAYS = ("ansible-playbook", "a worker", "all processes")  # what is killed
_RAN = "/data/ran"  # the folder of the files that hooks make
_KINDS = ("command", "module", "tasks")
_SETTLE = 1.0  # seconds for a worker to notice that it is an orphan
_LIMITS = {"per_source": 4, "per_dest": 4}
_FILES = 5
_EVENTS = 100  # of a run, until one has ended that counted them
_LATER = 0.7
_NOTICES = 60.0  # seconds for Ansible to end after a kill
_LOOK_SECONDS = 0.02
_LONGEST = 1200  # seconds of a run, on a machine under load


class Kill(NamedTuple):
    """What of a run is killed, after how many events, and how many seconds later."""

    way: str
    events: int
    later: float


class Case(NamedTuple):
    """What the jobs of a run are like."""

    sizes: tuple[int, ...]  # jobs of each group; 1: alone
    has_tasks: bool  # files of tasks among the hooks

    def __str__(self) -> str:
        return f"{len(self.sizes)} with {'' if self.has_tasks else 'no '}tasks"


CASES = (Case((1, 1, 1, 2, 2), False), Case((1, 2), True))


class HookRuns:
    """The jobs of a run and its rerun, and the runs of their hooks."""

    def __init__(self, bed: Testbed, playbooks: Playbooks, name: str, case: Case) -> None:
        self._bed, self._playbooks = bed, playbooks
        self.stops = [kind for kind in _KINDS if case.has_tasks or kind != "tasks"]
        self.starts = self.stops[::-1]
        self._state = playbooks.inventory.parent / name
        self.groups = [[f"{name}-{unit}{member}" for member in range(size)] for unit, size in zip("abcdef", case.sizes)]
        self.names = [one for group in self.groups for one in group]
        self._jobs = [
            {**self._job(one), **({"cutover_group": group[0]} if len(group) > 1 else {})}
            for group in self.groups
            for one in group
        ]
        for one in self.names:
            tree = bed.root("alpha") / "data" / one
            tree.mkdir()
            for number in range(_FILES):
                (tree / f"file{number}").write_text(f"{one} {number}\n" * 10_000)

    def _job(self, name: str) -> dict[str, Any]:
        ends = {"src_host": "alpha", "src": f"/data/{name}/", "dest_host": "beta", "dest": f"/data/{name}"}
        return {
            "name": name,
            **ends,
            "before_cutover": [self._hook("source", f"stop-{kind}-{name}", kind) for kind in self.stops],
            "after_cutover": [self._hook("dest", f"start-{kind}-{name}", kind) for kind in self.starts],
            "cutover_failed": [self._hook("source", f"back-command-{name}", "command")],
        }

    def _hook(self, side: str, word: str, kind: str) -> dict[str, Any]:
        args = {"path": _RAN, "prefix": f"{word}."}
        named = {"name": word, "host": side}
        if kind == "command":
            return {**named, "command": ["/bin/sh", "-c", f"mktemp {_RAN}/{word}.XXXXXX; sleep 0.3"]}
        if kind == "module":
            return {**named, "module": "ansible.builtin.tempfile", "args": args}
        file = self._playbooks.inventory.parent / f"{word}.yml"
        file.write_text(json.dumps([{"name": "Make the file", "ansible.builtin.tempfile": args}]), encoding="utf-8")
        return {**named, "tasks": file.name}

    def start(self) -> Running:
        """Start the migration."""
        options = {"migrate_report_dir": str(self._state), "migrate_limits": _LIMITS}
        return self._playbooks.start(
            "longhaul.fleet.migrate", migrate_jobs=self._jobs, migrate_phase="cutover", **options
        )

    def follow(self, running: Running, most: int) -> int:
        """Wait until a run has ended, or so many events; return how many there were.

        An event is a word of the run on the terminal or in a state, once there is one.
        """
        events, before = 0, ""
        while events < most:
            has_ended = running.process.poll() is not None
            states = [self._state / f"state/{name}.json" for name in self.names]
            now = str([path.stat().st_mtime_ns for path in (*states, running.log) if path.exists()])
            events += now != before and any(path.exists() for path in states)
            before = now
            if has_ended:
                break
            time.sleep(_LOOK_SECONDS)
        return events

    def ran(self, name: str, step: str) -> list[str]:
        """Return the kinds of the hooks of a job that ran, in their order."""
        found = [
            (path.stat().st_mtime, path.name.split("-")[1])
            for host in self._bed.hosts
            for path in (self._bed.root(host) / _RAN.lstrip("/")).glob(f"{step}-*-{name}.*")
        ]
        return [kind for _at, kind in sorted(found)]

    def state(self, name: str) -> dict[str, Any]:
        """Return the state of a job as it is on the disk, empty if there is none."""
        path = self._state / f"state/{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def check(self, group: Sequence[str], killed: dict[str, dict[str, Any]]) -> str:
        """Check the end of a group, and its hooks of both runs; return where it was, empty if it was not under way.

        ``killed`` are the states between the two runs.
        """
        has_begun = any(killed[name].get("switch") for name in group)
        for name in group:
            state, before = self.state(name), killed[name]
            expect(state["switch"]["done"] and not state["quiesced"], f"{name} was not switched over")
            expect(not state.get("hook") and not state.get("failure"), f"{name}: {state}")
            trees = (self._bed.root(host) / "data" / name for host in self._bed.hosts)
            expect(not differences(*trees), f"the trees of {name} differ")
            for step, kind in (("stop", "before_cutover"), ("start", "after_cutover")):
                ended = [_kind_of(hook) for hook in before.get("hooks", []) if hook["kind"] == kind]
                begun = [_kind_of(hook) for hook in [before.get("hook")] if hook and hook["kind"] == kind]
                due = ([] if has_begun else self.stops) if step == "stop" else self.starts[len(ended) :]
                ran = self.ran(name, step)
                told = f"{kind} of {name}: {ran}; before the kill: {ended}, {begun} had begun; due: {due}"
                expect(_explains(ran, ended, begun, due), told)
            expect(not self.ran(name, "back"), f"the source of {name} was brought back")
        first = killed[group[0]]
        if not first or all((killed[name].get("switch") or {}).get("done") for name in group):
            return ""
        hook = first.get("hook")
        within = f" in {hook['kind']}, {_kind_of(hook)}" if hook else ""
        return f"{'a group' if len(group) > 1 else 'alone'}: {first['run']['step']}{within}"


def _kind_of(hook: dict[str, Any]) -> str:
    return str(hook["name"].split("-")[1])


def _explains(ran: list[str], ended: list[str], begun: list[str], again: list[str]) -> bool:
    """Return whether these hooks ran once, but for one that may have run before the kill.

    Its own run may end when the rerun is under way.
    """
    once = ended + again
    late = [[*once[:at], *begun, *once[at:]] for at in range(len(ended), len(once) + 1)]
    return ran in [once, *late]


def run(count: int, seed: int, say: Say) -> int:
    """Make so many sequences, and print a line for each; return the exit code."""
    chance = random.Random(seed)
    say(f"hooks, seed {seed}")
    wrong, kills, places = 0, 0, collections.Counter[str]()
    with Testbed() as bed, tempfile.TemporaryDirectory(prefix="hooks-") as name:
        folder = Path(name)
        inventory = bed.inventory(folder / "inventory.yml", extra={"ansible_pipelining": True})
        playbooks = Playbooks(inventory, folder / "runs", collections_folder())
        for host in bed.hosts:
            (bed.root(host) / _RAN.lstrip("/")).mkdir()
        events = dict.fromkeys(CASES, _EVENTS)
        while places.total() + wrong < count:
            case = CASES[kills % len(CASES)]
            kill = Kill(
                WAYS[kills // len(CASES) % len(WAYS)], chance.randrange(events[case]), chance.uniform(0, _LATER)
            )
            runs = HookRuns(bed, playbooks, f"s{kills}", case)
            kills += 1
            say(f"hooks: {kills}: {case}; {kill.way} killed after {kill.events} of {events[case]} events")
            again, killed, whole = _kill_and_rerun(runs, kill)
            events[case] = whole or events[case]
            if again.rc:
                say(f"hooks: WRONG: the rerun failed:\n{again.output[-6000:]}")
            for group in runs.groups:
                try:
                    where = runs.check(group, killed)
                except (Unexpected, KeyError) as error:
                    wrong, where = wrong + 1, f"WRONG: {error!r}"
                else:
                    places.update([where] * bool(where))
                say(f"hooks: {kills}: {where or 'not under way'}")
            for host in bed.hosts:
                bed.exec(host, ["/bin/sh", "-c", f"rm -rf {_RAN}/* /data/s*-*"])
    say("hooks: killed at " + ", ".join(f"{place} ({many})" for place, many in sorted(places.items())))
    say(f"hooks: {kills} kills, {places.total() + wrong} sequences, {places.total()} resumed as documented")
    return int(bool(wrong))


def _kill_and_rerun(runs: HookRuns, kill: Kill) -> tuple[Run, dict[str, dict[str, Any]], int]:
    """Kill a run, and run again; return the rerun, the states between them, and all events if there was no kill."""
    running = runs.start()
    events = runs.follow(running, kill.events)
    try:
        running.process.wait(kill.later)
    except subprocess.TimeoutExpired:
        _kill(running, kill.way)
        events = 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.process.wait(_NOTICES)
        if running.process.poll() is None:  # Ansible's strategy free waits for ever for a worker that is gone
            running.kill()
    running.wait(_LONGEST)
    time.sleep(_SETTLE)
    killed = {name: runs.state(name) for name in runs.names}
    return runs.start().wait(_LONGEST), killed, events


def _kill(running: Running, way: str) -> None:
    if way == "ansible-playbook":
        running.kill()
        return
    if way == "all processes":
        _end([running.process.pid, *descendants(running.process.pid)])
        return
    while running.process.poll() is None:
        workers = [one for one in descendants(running.process.pid) if _is_worker(one, running.process.pid)]
        if workers:
            _end(workers[-1:])
            return
        time.sleep(0.02)


def _is_worker(process: int, parent: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    name, _bracket, rest = stat.partition("(")[2].rpartition(")")
    return name.startswith("ansible-") and rest.split()[1] == str(parent)


def _end(processes: Sequence[int]) -> None:
    for one in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
