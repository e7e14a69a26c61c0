# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the work on migration jobs has to do with: hosts, transfers, states, claims, leases, and the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..ansible_process import ansible_pid
from ..endpoint import Refusal
from ..fleet.claims import Held, process_of
from ..fleet.controller import Claims, controller_id
from ..fleet.keeper import Keeper
from ..fleet.lease import Lease, Terms
from ..fleet.limits import Limits
from ..fleet.queue import Waiting
from ..fleet.scheduler import WORDS, Scheduler, threads_of
from ..fleet.sessions import FAILURES, session_of
from ..fleet.snapshot import Publisher
from ..fleet.telling import Teller
from ..host_runner import HostRunner
from ..interruption import Interruption
from ..memory import Memory
from ..session import Session
from ..tags import is_wanted
from ..units import now_text
from .compared import compare_job
from .hosts import Hosts
from .record import record_id
from .render import render_report, render_summary
from .stages import firmness
from .steps import Phase, Step
from .store import Store
from .work import JobWork, Services

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase


class Outside:
    """The outside of one task that works on jobs."""

    def __init__(
        self,
        action: ActionBase,
        options: Mapping[str, Any],
        variables: Mapping[str, Any],
        say: Callable[[str], None],
        check: bool,
        total: int,
        works: Mapping[str, JobWork],
    ) -> None:
        """Take the action, its options, the variables of its task, and where lines go.

        ``total`` is how many jobs the run has, ``works`` are those of this task by the names of the jobs, as they come
        to be. Of the options all actions have ``phase``, ``folder`` and ``lease_seconds``, and where leases are
        taken, ``takeover`` and ``reset``. Raises Refusal if this control node cannot be told from others, and OSError.
        """
        self._options, self._variables, self._say, self._check = options, variables, say, check
        self._works = works
        self._memory = Memory()
        self.store = Store(options["folder"], writes=not check)
        self.totals: dict[str, dict[str, int]] = {}  # of all transfers of a job, once it is reported
        self.hints: list[str] = []  # what only holds for the last pass, which a person should know
        self._teller = Teller(say, time.monotonic, total, lambda name: works[name].step.value, Publisher())
        self._runner = partial(HostRunner, action, task_vars=variables, roles=("migrate",))
        try:
            self._controller = controller_id(options["folder"], write=not check)
        except ValueError as error:
            raise Refusal(str(error)) from None
        self._claims = Claims(options["folder"], process_of(ansible_pid()))
        self._keeper = Keeper(self._runner)

    def services(self, *, continues: bool = False) -> Services:
        """Return what the work on a job uses of it; ``continues``: an earlier task of the run has its lease already."""
        return Services(
            hosts=partial(self._hosts, continues=continues),
            transfer=self._transfer,
            compare=partial(compare_job, self._teller.tell_of_one),
            errors=FAILURES,
            store=self.store,
            now=now_text,
            tell=self._teller.note,
            report=self._report,
            claim=self._claim,
            release=self._release,
        )

    def wanted(self, steps: Iterable[Step]) -> set[Step]:
        """Return those steps that the user's tags leave."""
        return {step for step in steps if self.is_wanted(f"migrate_{step.value}")}

    def is_wanted(self, *tags: str) -> bool:
        """Return whether the user's tags leave what has these."""
        return is_wanted(tags, self._tags("ansible_run_tags"), self._tags("ansible_skip_tags"))

    def drive(self, jobs: Iterable[Waiting], limits: Limits, interruption: Interruption) -> None:
        """Do all the work, under the limits."""
        interruption.words = WORDS
        by_name = {name: partial(self._live, work) for name, work in self._works.items()}
        try:
            Scheduler(limits, threads_of(limits, self._variables), self._teller.progress, self._keeper).run(
                jobs, by_name
            )
        finally:
            self._keeper.close()
            self._teller.close()

    def _live(self, work: JobWork) -> Any:
        yield from work.live()
        self._teller.ended(work.record.failure is not None)

    def _tags(self, name: str) -> list[str]:
        return list(self._variables.get(name) or (["all"] if name == "ansible_run_tags" else []))

    def _hosts(self, job: Mapping[str, Any], *, continues: bool) -> Hosts:
        """Return both hosts of a job, with its lease unless nothing may change."""
        options, state = self._options, self._works[job["name"]].state
        terms = Terms(
            job=job["name"],
            host=job["dest_host"],
            identity=record_id(job),
            holder=self._controller,
            who=state["run"]["by"],
            life=options["lease_seconds"],
            takeover=not continues and options["takeover"],
        )
        if self._check or Phase(options["phase"]) is Phase.PREFLIGHT:  # which change nothing, not even a lease
            return Hosts(job, self._runner, terms)
        lease = Lease(terms, firmness(state, not continues and options["reset"]), held=continues)
        self._keeper.add(job["name"], lease)
        return Hosts(job, self._runner, terms, lease)

    def _claim(self, job: str) -> str:
        """Claim a job against other runs here; return which one has it, empty if none does."""
        try:
            self._claims.take(job)
        except Held as held:
            return str(held)
        return ""

    def _release(self, job: str, record: Mapping[str, object] | None) -> None:
        """Let other runs have a job, here and elsewhere, once its destination has kept a record of it."""
        self._claims.release(job)
        self._keeper.release(job, record)

    def _transfer(
        self, job: Mapping[str, Any], hosts: Hosts, check: bool, limit: int | None, collect: bool, verify: str
    ) -> Session:
        """Return a transfer of a job as its session; ``limit`` is the role's own limit of deletions.

        Its destination takes over, so nothing may be lost there with the power; and the less is not on its disk after
        a pass, the shorter the last one takes.
        """
        max_delete, sync = job.get("max_delete", limit), job.get("sync") or "data"
        own = {"verify": verify, "max_delete": max_delete, "sync": sync, "collect": collect}
        is_last = verify == (job.get("verify") or "checksum")  # the comparison after which nothing is compared
        return session_of(job, hosts, check, self._teller.tell_of_one, self._memory, is_last, **own)

    def _report(self, report: Mapping[str, Any]) -> None:
        self.store.report(report["name"], report, render_report(report))
        self.totals[report["name"]] = dict(report["totals"])
        self.hints += [f"{report['name']}: {hint}" for hint in report["hints"]]
        if not self._teller.is_many:
            for line in render_summary(report):
                self._say(line)
            return
        failure = report["failure"]
        ended = f"stopped in {failure['phase']}" if failure else ", ".join(report["phases"]) or "nothing done"
        self._say(f"{report['name']}: {ended}")
