# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of a migration: what the action was given becomes lives of jobs, which a conductor drives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from ..fleet.limits import check_pairs, parse_limits
from ..fleet.queue import Waiting, rank
from ..fleet.scheduler import pair_of
from ..interruption import Interruption
from .life import STEPS, JobLife
from .outside import Outside
from .steps import Phase, Step
from .work import Options

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase

_LIMITS = "migrate_limits"


class JobRecord(TypedDict):
    """What the role's tasks need to know of a job."""

    name: str
    dest_host: str
    changed: bool
    left: bool  # the role has more to do with it in this run
    failure: dict[str, str]  # empty if it did not fail
    switched: bool  # by this run or an earlier one
    totals: dict[str, int]  # of all transfers; empty if there is no report of this run


class Run:
    """One task of the role with all its jobs."""

    def __init__(
        self,
        action: ActionBase,
        options: Mapping[str, Any],
        variables: Mapping[str, Any],
        say: Callable[[str], None],
        interruption: Interruption,
        write: bool,
    ) -> None:
        """Take the action, its options, the variables of its task, where lines go, and the last words.

        Without ``write`` (check mode) all is predicted.
        Raises LimitError for limits that make no sense, Refusal if this control node cannot be told from others, and
        OSError.
        """
        self._options, self._variables, self._interruption = options, variables, interruption
        self._check = not write
        self._jobs = {job["name"]: {**options["defaults"], **job} for job in options["jobs"]}
        self._limits = parse_limits(options["limits"], _LIMITS)
        self._lives: dict[str, JobLife] = {}
        self._outside = Outside(action, options, variables, say, self._check, len(self._jobs), self._lives)
        self.diffs: dict[str, list[str]] = {}

    @property
    def hints(self) -> list[str]:
        """What only holds for the last pass, which a person should know."""
        return self._outside.hints

    def conduct(self) -> list[JobRecord]:
        """Drive all jobs, and return what was done with each, in the order of the list."""
        pairs = {
            name: pair_of(job, job["src_host"], job["dest_host"], self._variables) for name, job in self._jobs.items()
        }
        check_pairs(pairs, self._limits, _LIMITS)
        jobs = [
            Waiting(rank(int(self._jobs[name].get("priority") or 0), self._size(name), number), name, pair)
            for number, (name, pair) in enumerate(pairs.items())
        ]
        options, services = self._run_options(), self._outside.services()
        self._lives.update({name: JobLife(job, options, services) for name, job in self._jobs.items()})
        self._outside.drive(jobs, self._limits, self._interruption)
        self.diffs = {name: life.record.diff for name, life in self._lives.items()}
        return [self._record(life) for life in self._lives.values()]

    def _record(self, life: JobLife) -> JobRecord:
        """Return what the role's tasks need to know of a job."""
        record, state = life.record, life.state
        return {
            "name": record.name,
            "dest_host": self._jobs[record.name]["dest_host"],
            "changed": record.changed,
            "left": life.goes_on,
            "failure": record.failure._asdict() if record.failure else {},
            "switched": bool(state and state["switch"].get("done")),
            "totals": self._outside.totals.get(record.name, {}),
        }

    def _run_options(self) -> Options:
        options, outside = self._options, self._outside
        return Options(
            phase=Phase(options["phase"]),
            steps=outside.wanted((*STEPS, Step.CUTOVER)),
            started_by=options["started_by"],
            check_mode=self._check,
            installs=options["manage_packages"] and outside.is_wanted("migrate_preflight", "migrate_packages"),
            predicts=options["preflight_predict"],
            reset=options["reset"],
            may_delete=options["allow_delete"],
            short_enough=options["sync_short_enough"],
            max_passes=options["sync_max_passes"],
            takeover=options["takeover"],
            run_id=options["run_id"],
            has_hooks=options["has_hooks"],
            compares_first=options["verify_when"] == "before_switch",
        )

    def _size(self, name: str) -> float:
        """Return the bytes of a job's tree by its last report, 0 if there is none."""
        try:
            phases = self._outside.store.read(name).get("phases", {})
        except (OSError, ValueError):  # which the job itself says
            return 0.0
        known = phases.get("seed") or phases.get("preflight", {}).get("predicted") or {}
        return float(known.get("bytes_total", 0))
