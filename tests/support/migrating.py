# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migration jobs with hosts, transfers and hooks that answer as they are told to.

The scheduler, the workflows and the files with their states are real.
"""

from __future__ import annotations

import datetime
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import Limits, Pair
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.polling import Watch
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.queue import Waiting, rank
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.scheduler import Pause, Scheduler, Workflow
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hook_steps import TasksHook, TasksResult
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.hooks import Hook
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.groups import Gate, find_groups, settle
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.job_run import Options, Services
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.phases import Phase, Step
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.preflight import (
    parse_discovered,
    parse_tree_users,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.state import HOOKS, MigrationState, TreeUsers
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.store import MigrationStore
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.workflow import MigrationWorkflow
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status

JOB = {"name": "data", "src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}
FOUND = {
    "base": "/srv", "mount": "/srv", "fstype": "xfs", "bytes_free": 2**40, "files_free": None, "xattrs": True,
    "acls": True, "case_insensitive": False, "largest_file": None, "tools": {"rsync": "/r", "ssh": "/s"},
    "peer": "open", "root": True, "problems": [], "warnings": [],
}  # fmt: skip
BEGAN = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def result(**changes: Any) -> dict[str, Any]:
    """Return the result of a transfer that sent something and took ten seconds."""
    counts = dict.fromkeys(("files_updated", "files_deleted", "attributes_changed", "vanished", "errors_total"), 0)
    return {
        **counts,
        "state": "finished",
        "files_created": 3,
        "duration": 10.0,
        "bytes_sent": 7,
        "changed": True,
        **changes,
    }


COUNTS = {"entries": 3, "bytes": 7, "types": {"f": 3}}


def compared(**changes: Any) -> dict[str, Any]:
    """Return the result of a transfer with a comparison at its end."""
    found = {"algorithm": "blake2b", "source": COUNTS, "dest": COUNTS}
    return result(**{"compared": found, "verified": "checksum", "phases": {"verify": 2.5}, **changes})


NOTHING = result(files_created=0, bytes_sent=0, changed=False)


class Killed(BaseException):
    """The run ends here, as if it was killed."""


class FakeLease:
    """The lease of a job; ``lost`` says which other control node has it."""

    held, age, life, firm = False, 0.0, 900.0, None

    def __init__(self, lost: str = "", told: str = "") -> None:
        self.lost, self.told = lost, told


class FakeHosts:
    """Both hosts of a job."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name
        self._riding: Mapping[str, Any] | None = None
        self.has_kept, self.not_kept = False, ""

    @property
    def lease(self) -> Any:
        return self._world.lease

    def probe(self) -> dict[str, Any]:
        world = self._world
        if world.unreachable is not None:
            raise world.unreachable
        kept = world.records.get(self._name)
        record = {"id": "x", "age": 5.0, "record": kept} if kept else None
        found = {**world.found, "dest": {"record": record, **world.found["dest"]}}
        return {side: parse_discovered(one) for side, one in found.items()}

    def install(self, side: str, programs: list[str]) -> tuple[list[str], str]:
        self._world.installed.append((side, programs))
        return programs, ""

    def find_tree_users(self) -> TreeUsers:
        return parse_tree_users(self._world.used)

    def close(self) -> None:
        self._world.closed += 1

    def find_holder(self, _found: object) -> str:
        return self._world.holder

    def hold(self) -> None:
        self._world.holds += 1

    def keep(self, record: Mapping[str, Any]) -> None:
        self._riding = record

    def keep_now(self, record: Mapping[str, Any] | None, releases: bool = False) -> None:
        world = self._world
        world.asked.append("release" if releases else "keep")
        if world.taken_at == len(world.asked):
            world.lease.lost = TAKEN
            return
        if world.away and len(world.asked) >= world.away_from:
            self.not_kept = world.away
        elif record is not None:
            self._keep(record)

    def ride(self) -> None:
        """Let the record that waits reach the destination, with a transfer."""
        if self._riding and self._world.is_taken_with_transfer:
            self._world.lease.lost = TAKEN
        elif self._riding:
            self._keep(self._riding)
        self._riding = None

    def _keep(self, record: Mapping[str, Any]) -> None:
        self._world.keep(record)
        self.has_kept, self.not_kept = True, ""


TAKEN = "ada@control1 has taken over job data"


class FakeTransfer:
    """A transfer that ends as the test says."""

    status = Status("running", alive=True)
    places = ()

    def __init__(self, world: World, hosts: FakeHosts, verify: str) -> None:
        self._world, self._hosts, self._verify = world, hosts, verify

    def begin(self) -> FakeTransfer:
        self._hosts.ride()
        return self

    def finish(self, _running: object, status: Status) -> dict[str, Any]:
        assert status.state == "finished"
        if self._world.transfers is None:
            return result() if self._verify == "none" else compared()
        assert self._world.transfers, "no transfer was expected"
        ended = self._world.transfers.pop(0)
        if isinstance(ended, Exception):
            raise ended
        return ended


class FakeRunner:
    """The host of a hook."""

    def __init__(self, world: World, host: str, hook: Hook) -> None:
        self.name, self._world, self._hook = host, world, hook

    def run_once(self, module: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        world = self._world
        if module == "ansible.builtin.ping":
            what = f"ping {self.name}"
        else:
            what = what_runs({"command": self._hook.command, "module": self._hook.module, "args": args})
            world.ran.append(what)
        answer = world.answers.get(what, {"rc": 0, "changed": True})
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, float):  # it takes so many seconds
            time.sleep(answer)
            return {"rc": 0}
        return dict(answer)

    def close(self) -> None:
        self._world.hook_hosts.append((self.name, self._hook.become, self._hook.hidden))

    def reset(self) -> None:
        """Forget the connection."""


def what_runs(hook: Mapping[str, Any]) -> str:
    """Return what the log of a world calls a hook: its command, its module with the name it got, or its tasks."""
    if hook.get("command"):
        return " ".join(hook["command"])
    return f"{hook['module']} {hook['args'].get('name')}" if hook.get("module") else str(hook["tasks"])


class World:
    """Hosts, transfers, hooks and a folder of states; remembers what it was asked for."""

    lease: Any = None
    holder = ""  # another control node that works on the jobs
    taken_at = 0  # with which question another control node has taken the jobs over, counted from 1
    is_taken_with_transfer = False
    away_from = 1  # the first question to which ``away`` is the answer

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: dict[str, Any] = {"source": FOUND, "dest": FOUND}
        self.used: dict[str, Any] = {}  # the tree at the destination, when the cutover begins
        self.unreachable: HostFailed | None = None
        self.refused_after = ""  # once this hook has run, a host is asked for nothing
        self.transfers: list[dict[str, Any] | Exception] | None = []  # None: all succeed
        self.began: list[tuple[bool, int | None]] = []  # check mode, and the role's limit of deletions
        self.compared: list[str] = []  # at the end of each transfer
        self.comparisons: list[dict[str, Any]] = []
        self.installed: list[tuple[str, list[str]]] = []
        self.said: list[str] = []
        self.reports: list[dict[str, Any]] = []
        self.paused: list[float] = []
        self.closed = self.holds = 0
        self.claimed = ""  # by another run here
        self.released: list[str] = []
        self.kept: list[dict[str, Any]] = []  # records, as they reached the destination
        self.records: dict[str, dict[str, Any]] = {}  # by job: what the destination has
        self.asked: list[str] = []  # of the destination, beside transfers
        self.away = ""  # why the destination cannot be asked
        self.ran: list[str] = []  # hooks, in their order
        self.answers: dict[str, Any] = {}  # of hooks: what the module returned, raised, or how long it takes
        self.hook_hosts: list[tuple[str, bool | None, bool]] = []  # with become, and whether they are hidden
        self.tasks_answers: dict[str, Mapping[str, Any] | None] = {}  # failures of files of tasks; None: no answer
        self.missing: list[str] = []  # files of tasks that do not exist
        self.handed_over: list[TasksHook] = []
        self.ticks = 0  # events so far: waits that begin, waits that end, writes of states
        self.dies_at = 0  # at which of them the run is killed; 0: at none
        self._seconds, self._runs = itertools.count(), itertools.count(1)

    def keep(self, record: Mapping[str, Any]) -> None:
        """Have the destination keep a record."""
        self.kept.append(dict(record))
        self.records[record["name"]] = self.kept[-1]

    # Runs

    def begin(self, job: Mapping[str, Any] | None = None, **wanted: Any) -> MigrationWorkflow:
        """Make the first call of a run with one job."""
        made = {**JOB, **(job or {})}
        return self._call([made], self._options([made], wanted))[made["name"]]

    def run(self, job: Mapping[str, Any] | None = None, **wanted: Any) -> MigrationWorkflow:
        """Make a whole run with one job."""
        made = {**JOB, **(job or {})}
        self.closed, before = 0, len(self.began)
        workflow = self.run_all([made], **wanted)[made["name"]]
        assert self.closed or len(self.began) == before
        return workflow

    def run_all(self, jobs: Sequence[Mapping[str, Any]], **wanted: Any) -> dict[str, MigrationWorkflow]:
        """Make a whole run with jobs of one group: calls of the action and files of tasks in turn, as the role does."""
        options = self._options(jobs, wanted)
        done = self._call(jobs, options)
        answers: dict[str, TasksResult] = {}
        first = len(self.handed_over)
        while left := [job for job in jobs if done[job["name"]].result.left]:
            continued = options._replace(hands_over=(), continues=True, takeover=False, tasks_results=answers)
            before, handed = done, len(self.handed_over)
            done = {**done, **self._call(left, continued, jobs)}
            for name, workflow in done.items():
                workflow.result.changed = workflow.result.changed or before[name].result.changed
            due = self.handed_over[handed:]
            assert len(self.handed_over) - first < 30, "it would never end"
            assert due or not any(workflow.result.left for workflow in done.values())
            for hook in due:
                self._tick()
                answers = {**answers, **self._run_tasks(hook)}
                self._tick()
        return done

    def _options(self, jobs: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> Options:
        """Return the options of a run; ``wanted`` are those that are not as usual."""
        options = Options(
            **{
                "phase": Phase.SYNC,
                "steps": tuple(Step),
                "sync_short_enough": 60.0,
                "sync_max_passes": 3,
                "started_by": "me",
                "run_id": f"run-{next(self._runs)}",
                "hook_folder": str(self.folder.parent),
                **wanted,
            }
        )
        lists = [
            *options.hooks.values(),
            *((job.get(kind) or ()) for kind in HOOKS for job in jobs),
        ]
        files = [hook["tasks"] for hooks in lists for hook in hooks if hook.get("tasks")]
        for file in files:
            if file not in self.missing:
                (self.folder.parent / file).touch()
        return options._replace(hands_over={job["name"] for job in jobs} if files else ())

    def _call(
        self, jobs: Sequence[Mapping[str, Any]], options: Options, every: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, MigrationWorkflow]:
        """Call the action once, with some of ``every`` job of the run."""
        workflows: dict[str, MigrationWorkflow] = {}
        groups = {name: group.jobs for name, group in find_groups(every or jobs).items()}
        options = options._replace(groups=groups)
        services = self._services(workflows, groups, options)
        workflows.update({job["name"]: MigrationWorkflow(job, options, services) for job in jobs})
        waiting = [
            Waiting(rank(0, 0, number), name, Pair("old", "new"), is_cutover=options.continues)
            for number, name in enumerate(workflows)
        ]
        scheduler = Scheduler(Limits(per_source=9, per_dest=9), 2, lambda _known: None, None, groups)
        scheduler.run(waiting, {name: partial(self._drive, workflow.run) for name, workflow in workflows.items()})
        self.handed_over += [scheduler.handed_over[name] for name in workflows if name in scheduler.handed_over]
        return workflows

    def _drive(self, run: Callable[[], Workflow]) -> Workflow:
        """Run a workflow without waiting: each transfer has ended once it is watched, and each pause is over."""
        steps = run()
        value: object = None
        error: Exception | None = None
        while True:
            try:
                wanted = steps.send(value) if error is None else steps.throw(error)
            except StopIteration:
                return
            value = error = None
            self._tick()
            if isinstance(wanted, Watch):
                value = Status("finished", alive=False)
            elif isinstance(wanted, Pause):
                self.paused.append(wanted.seconds)
            else:
                try:
                    value = yield wanted
                except Exception as raised:  # the workflow is told, as the scheduler would
                    error = raised
            self._tick()

    def _tick(self) -> None:
        self.ticks += 1
        if self.ticks == self.dies_at:
            raise Killed

    def _run_tasks(self, hook: TasksHook) -> dict[str, TasksResult]:
        """Run a file of tasks, as the role does, and return its answer if there is one."""
        file = Path(hook.file).name
        self.ran.append(file)
        failure = self.tasks_answers.get(file, {})
        if failure is None:
            return {}
        return {hook.job: TasksResult(hook.id, bool(failure), failure, "do it" if failure else "")}

    # What a workflow uses

    def _services(
        self, workflows: Mapping[str, MigrationWorkflow], groups: Mapping[str, Sequence[str]], options: Options
    ) -> Services:
        store = KillableStore(str(self.folder), not options.check_mode, self._tick)

        def decide_group(group: str, gate: Gate, waiting: Sequence[str]) -> Mapping[str, str]:
            states = {name: workflows[name].state if name in workflows else store.read(name) for name in groups[group]}
            obstacles = settle(states, options.run_id, gate, self._now(), options.phase is Phase.CUTOVER)
            for state in states.values():
                if state is not None:
                    store.save(state)
            return {name: obstacles[name] for name in waiting}

        return Services(
            hosts=self._hosts,
            transfer=self._transfer,
            compare=lambda _job, _hosts, _state: self.comparisons.pop(0),
            errors=(TransferError, HostFailed),
            store=store,
            now=self._now,
            tell=self.said.append,
            report=lambda report: self.reports.append(dict(report)),
            hook_runner=lambda host, hook: FakeRunner(self, host, hook),  # type: ignore[arg-type, return-value]
            decide_group=decide_group,
            claim=lambda _job: self.claimed,
            release=self._release,
        )

    def _now(self) -> str:
        return f"{BEGAN + datetime.timedelta(seconds=next(self._seconds)):%Y-%m-%dT%H:%M:%SZ}"

    def _hosts(self, job: Mapping[str, Any]) -> Any:
        if self.refused_after in self.ran:
            raise HostFailed("longhaul_trust: set among the facts of new")
        return FakeHosts(self, job["name"])

    def _transfer(
        self, _job: object, hosts: Any, check: bool, limit: int | None, _collect: bool, verify: str
    ) -> FakeTransfer:
        self.began.append((check, limit))
        self.compared.append(verify)
        return FakeTransfer(self, hosts, verify)

    def _release(self, job: str, record: Mapping[str, object] | None) -> None:
        self.released.append(job)
        if record is not None:
            self.keep(record)

    # States

    def read(self, name: str = "data") -> dict[str, Any]:
        """Return what the file of a job's state holds."""
        return dict(json.loads((self.folder / f"state/{name}.json").read_text()))

    def exists(self, name: str) -> bool:
        """Return whether a job has a state."""
        return (self.folder / f"state/{name}.json").exists()

    @property
    def state(self) -> dict[str, Any]:
        """What the file of the usual job's state holds."""
        return self.read()

    def write(self, name: str = "data", **changes: Any) -> None:
        """Change members of a job's state, which may be that of the usual job so far."""
        path = self.folder / f"state/{name}.json"
        known = self.read(name if path.exists() else "data")
        path.write_text(json.dumps({**known, "name": name, **changes}))


class KillableStore(MigrationStore):
    """States, of which each write is an event."""

    def __init__(self, folder: str, writes: bool, tick: Callable[[], None]) -> None:
        super().__init__(folder, writes)
        self._tick = tick

    def save(self, state: MigrationState) -> None:
        """Write a state."""
        super().save(state)
        self._tick()
