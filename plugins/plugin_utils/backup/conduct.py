# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One task of the role: what an action was given becomes lives of backups, which a conductor drives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..ansible_process import ansible_pid
from ..fleet.claims import process_of
from ..fleet.limits import Limits
from ..fleet.queue import Waiting
from ..fleet.scheduler import WORDS, Scheduler, Workflow, threads_of
from ..fleet.sessions import FAILURES, session_of
from ..fleet.snapshot import Publisher
from ..fleet.telling import Teller
from ..host_runner import HostRunner
from ..interruption import Interruption
from ..memory import Memory
from ..session import Session
from ..units import now_text
from .hosts import Filling, Hosts
from .record import Record
from .report_text import render_summary
from .store import Store
from .workflow import BackupWorkflow, Services

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase


class Conduct:
    """Drives the backups of one task."""

    def __init__(
        self,
        action: ActionBase,
        variables: Mapping[str, Any],
        say: Callable[[str], None],
        interruption: Interruption,
        store: Store,
        total: int,
    ) -> None:
        """Take the action, the variables of its task, where lines go, the last words, and how many backups there are.

        With a store that does not write (check mode) all is predicted.
        """
        self._action, self._variables, self._say = action, variables, say
        self._interruption, self._store = interruption, store
        self._teller = Teller(say, time.monotonic, total, self._phase_of, Publisher())
        self._lives: Mapping[str, BackupWorkflow] = {}
        self._memory = Memory()

    def drive(self, lives: Mapping[str, BackupWorkflow], waiting: Iterable[Waiting], limits: Limits) -> None:
        """Let all backups live to their end, by their ids."""
        self._interruption.words = WORDS
        self._lives = lives
        by_name = {name: partial(self._live, life) for name, life in lives.items()}
        try:
            Scheduler(limits, threads_of(limits, self._variables), self._teller.progress).run(waiting, by_name)
        finally:
            self._teller.close()

    def _phase_of(self, name: str) -> str:
        return self._lives[name].step.value

    @property
    def services(self) -> Services:
        """What the lives use of the outside."""
        return Services(
            hosts=lambda run: Hosts(
                run, partial(HostRunner, self._action, task_vars=self._variables, roles=("backup",))
            ),
            hook_runner=lambda host, hook: HostRunner(
                self._action, host, self._variables, ("backup",), hook.become, hook.hidden
            ),
            transfer=self._transfer,
            errors=FAILURES,
            store=self._store,
            process=process_of(ansible_pid()),  # of ansible-playbook, which lives for the run; this is a worker of it
            now=now_text,
            tell=self._teller.note,
            report=self._report,
        )

    def _live(self, life: BackupWorkflow) -> Workflow:
        yield from life.run()
        self._teller.ended(bool(life.progress.failures))

    def _transfer(self, job: Mapping[str, Any], hosts: Hosts, filling: Filling) -> Session:
        check = not self._store.writes
        return session_of(job, hosts, check, self._teller.tell_of_one, self._memory, snapshot=filling)

    def _report(self, record: Record) -> None:
        """Show what became of a backup, in one line where there are many."""
        lines = render_summary(record, predicted=not self._store.writes)
        if self._teller.is_many:
            failed = f"failed in {record['failures'][0]['step']}" if record["failures"] else record["snapshot"]
            lines = [f"{record['id']}: {failed or 'done'}"]
        for line in lines:
            self._say(line)
