# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call of the action backup_run: hosts, files and the terminal for the workflows of its backups."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...common.ansible_process import ansible_pid
from ...common.memory import Memory
from ...common.refusal import Refusal
from ...common.units import now_text
from ...fleet.claims import process_of
from ...fleet.console import Activity, Output, ProgressPrinter
from ...fleet.controller import controller_id
from ...fleet.lock import Lease, Terms
from ...fleet.lock_renewal import LeaseRenewer
from ...fleet.progress_file import ProgressLog, ProgressWriter
from ...fleet.queue import Waiting
from ...fleet.scheduler import WORDS, Scheduler, Workflow, threads_of
from ...hosts.host_runner import HostRunner
from ...hosts.interruption import Interruption
from ...hosts.pair import PairHosts
from ...transfer.session import Session
from ..hook_steps import TasksHook, read_tasks_results
from ..hooks import Hook
from ..sessions import FAILURES, session_of
from .drill_run import RestoreDrill
from .hosts import BackupHosts, Filling, lease_id
from .jobs import Run
from .planning import Plan
from .report_text import render_summary
from .state import BackupRecord
from .store import BackupStore
from .workflow import BackupServices, BackupWorkflow

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase


class BackupRun:
    """The backups of one call."""

    def __init__(
        self,
        action: ActionBase,
        options: Mapping[str, Any],
        variables: Mapping[str, Any],
        say: Callable[[str], None],
        plan: Plan,
        store: BackupStore,
    ) -> None:
        """Take the action, its options, the variables of its task, where lines go, the plan, and the files.

        With a store that does not write (check mode) all is predicted. Raises OSError, and Refusal if this control node
        has no id.
        """
        self._options = options
        self._variables, self._say, self._plan, self._store = variables, say, plan, store
        self._continues = options["part"] == "continue"
        self._waiting = plan.hooked if self._continues else plan.runs
        self._teller = ProgressPrinter(
            say,
            time.monotonic,
            len(self._waiting),
            self._activity_of,
            ProgressWriter(),
            Output(options["output"]),
            ProgressLog(options["progress_file"], say, write=store.writes),
        )
        self._runner = partial(HostRunner, action, task_vars=variables, roles=("backup",))
        self._memory = Memory()
        try:
            self._controller = controller_id(options["folder"], write=store.writes)
        except ValueError as error:
            raise Refusal(str(error)) from None
        self._keeper = LeaseRenewer(self._runner)
        self._workflows: dict[str, BackupWorkflow] = {}
        self._made_before = {record.id: record for record in plan.known.values() if record.run_id == options["run_id"]}
        self._services = BackupServices(
            hosts=self._hosts,
            hook_runner=self._hook_runner,
            transfer=self._transfer,
            errors=FAILURES,
            store=store,
            process=process_of(ansible_pid()),  # of ansible-playbook, which lives for the run; this is a worker of it
            now=now_text,
            tell=self._teller.note,
            report=self._report,
            run_id=options["run_id"],
            continues=self._continues,
            takeover=options["takeover"],
            drills_only=options["drill_only"],
            drill=self._drill,
            let_go=self._keeper.release,
            hook_folder=options["hook_folder"],
            tasks_results=read_tasks_results(options["tasks_results"]),
        )

    def run(self, interruption: Interruption) -> list[TasksHook]:
        """Make the backups that are left as far as this call can; return the file of tasks that is due.

        The first call makes all that have no files of tasks, at once. Those that have follow in later calls, one after
        the other, since a source that a hook has stopped waits for no other backup.
        """
        interruption.words = WORDS
        left, run_id = self._waiting, self._services.run_id
        units = [left]
        if self._continues:
            left = [one for one in left if one.name not in self._made_before]
            left.sort(key=lambda one: not self._store.has_begun(one.name, run_id))  # its source may be stopped
            units = [[one] for one in left]
        try:
            for unit in units:
                due = self._drive(unit)
                if due:
                    return list(due.values())
        finally:
            self._keeper.close()
            self._teller.close()
        return []

    def _drive(self, waiting: Sequence[Waiting]) -> Mapping[str, TasksHook]:
        plan = self._plan
        made = {
            one.name: BackupWorkflow(plan.by_id[one.name], self._services, plan.known.get(one.name)) for one in waiting
        }
        self._workflows.update(made)
        threads = threads_of(plan.limits, self._variables)
        scheduler = Scheduler(plan.limits, threads, self._teller.progress, self._keeper)
        scheduler.run(waiting, {name: partial(self._follow, workflow) for name, workflow in made.items()})
        return scheduler.handed_over

    def _follow(self, workflow: BackupWorkflow) -> Workflow:
        yield from workflow.run()
        if workflow.busy:
            with contextlib.suppress(OSError):  # the result of this call says it, too
                self._store.save_busy(workflow.id, self._services.run_id, workflow.busy)
        self._teller.ended(bool(workflow.state.failures), workflow.id)

    def _activity_of(self, name: str) -> Activity:
        return Activity(self._workflows[name].step.value)

    @property
    def records(self) -> list[BackupRecord]:
        """The records of the backups of this call, and of earlier calls that it continues."""
        made = [workflow.record for workflow in self._workflows.values() if workflow.record is not None]
        return [*self._made_before.values(), *made]

    @property
    def busy(self) -> dict[str, str]:
        """Why this call did not make backups at which another run is at work, by their names."""
        return {name: workflow.busy for name, workflow in self._workflows.items() if workflow.busy}

    @property
    def changed(self) -> bool:
        """Whether this call has changed anything."""
        return any(workflow.changed for workflow in self._workflows.values())

    @property
    def diffs(self) -> dict[str, list[str]]:
        """The changes of each backup, for ``--diff``."""
        return {name: workflow.diff for name, workflow in self._workflows.items()}

    # What the workflows use

    def _hosts(self, run: Run) -> BackupHosts:
        """Return both hosts of a backup, with its lease unless nothing may change.

        While a file of tasks runs nothing renews the lease, so that of a backup with such files expires by nothing.
        """
        writes, goes_on = self._store.writes, self._workflows[run["id"]].goes_on
        terms = Terms(
            job=run["id"],
            host=run["repository"]["host"],
            identity=lease_id(run),
            holder=self._controller or "none",
            who=self._options["started_by"],
            takeover=self._options["takeover"] and not goes_on,
            variable="backup_takeover",
            hooks="its hooks",
        )
        if not writes:
            return BackupHosts(run, self._runner, None if terms.takeover else terms, by=terms.who)
        lease = Lease(terms, firm=self._continues, held=goes_on)
        self._keeper.add(run["id"], lease)
        return BackupHosts(run, self._runner, lease=lease, by=terms.who)

    def _hook_runner(self, host: str, hook: Hook) -> HostRunner:
        return self._runner(host, become=hook.become, no_log=hook.hidden)

    def _transfer(self, job: Mapping[str, Any], hosts: PairHosts, filling: Filling | None) -> Session:
        check = not self._store.writes
        return session_of(job, hosts, check, self._teller.speaker(str(job["name"])), self._memory, snapshot=filling)

    def _drill(self, run: Run) -> RestoreDrill | None:
        if run["drill"] is None:
            return None
        return RestoreDrill(
            run,
            run["drill"],
            self._plan.used[run["drill"].host],
            self._runner,
            self._restore,
            FAILURES,
            self._teller.note,
        )

    def _restore(self, job: Mapping[str, Any], hosts: PairHosts) -> Session:
        # Each drill has another destination, so there is nothing to remember.
        return session_of(job, hosts, False, self._teller.speaker(str(job["name"])), None)

    def _report(self, record: BackupRecord) -> None:
        """Show what became of a backup, in one line where there are many."""
        is_drill = self._services.drills_only
        lines = render_summary(record, predicted=not self._store.writes, only_drill=is_drill)
        if self._teller.is_many:
            failed = f"failed in {record.failures[0].step}" if record.failures else record.snapshot
            lines = [f"{record.id}: {failed or 'done'}"]
        for line in lines:
            self._say(line)
