# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run is to do: the runs of its jobs, those with files of tasks as hooks apart, under which limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

from ..endpoint import Refusal
from ..fleet.limits import Limits, check_pairs, parse_limits
from ..fleet.queue import Waiting, rank
from ..fleet.scheduler import pair_of
from ..fleet.slices import is_automated
from .job_problems import find_problems
from .jobs import Run, make_runs
from .record import Record
from .store import Store

_LIMITS = "fleet_limits"


class Lane(TypedDict):
    """Runs whose hooks are files of tasks, which go one after the other."""

    name: str
    runs: list[str]  # ids


class Plan(NamedTuple):
    """What a run is to do."""

    runs: list[Run]  # with all their hooks, of which none is a file of tasks
    hooked: list[Run]  # the others
    waiting: list[Waiting]  # runs
    limits: Limits
    known: Mapping[str, Record]  # the last records, by id

    @property
    def wanted(self) -> list[str]:
        """The ids of all."""
        return [run["id"] for run in (*self.runs, *self.hooked)]

    @property
    def lanes(self) -> list[Lane]:
        """The lanes of those with files of tasks."""
        lanes: dict[str, Lane] = {}
        for run in self.hooked:
            lanes.setdefault(run["lane"], {"name": run["lane"], "runs": []})["runs"].append(run["id"])
        return list(lanes.values())


def apply_defaults(jobs: Sequence[Any], defaults: Mapping[str, Any]) -> list[Any]:
    """Return the jobs with what counts for all of them; what is no job stays, and is reported as a problem."""
    return [{**defaults, **job} if isinstance(job, Mapping) else job for job in jobs]


def plan(options: Mapping[str, Any], variables: Mapping[str, Any], store: Store) -> Plan:
    """Return what the action was asked for. Raises Refusal and LimitError before anything begins.

    ``options`` are those of the module backup_conduct, and ``variables`` those of its task.
    """
    jobs, groups = apply_defaults(options["jobs"], options["defaults"]), variables["groups"]
    _refuse_problems(find_problems(jobs, groups, only=options["only"], automated=is_automated(variables)))
    own = options["repository_host"]
    concurrency = 1 if own else max(1, options["concurrency"])
    every = make_runs(jobs, groups, only=options["only"])
    every = [run for run in every if own in ("", run["repository"]["host"])]
    known = {record["id"]: record for record in store.read_all(run["id"] for run in every)}
    of_all = [*options["before"], *options["after"]]
    has_tasks = {run["id"]: has_files_of_tasks([*of_all, *run["before"], *run["after"]]) for run in every}

    def those(hooked: bool) -> list[Run]:
        """Return the runs with files of tasks or without.

        They never run at once, so each have all lanes and all bandwidth.
        """
        ids = [name for name, has in has_tasks.items() if has is hooked]
        how = {"concurrency": concurrency, "bwlimit": options["bwlimit"], "direction": options["direction"]}
        return make_runs(jobs, groups, only=ids, records=list(known.values()), **how) if ids else []

    runs = those(hooked=False)
    for run in runs:
        run["before"] = [*options["before"], *run["before"]]
        run["after"] = [*run["after"], *options["after"]]
    limits = replace(parse_limits(options["limits"], _LIMITS), per_dest=concurrency)
    return Plan(runs, those(hooked=True), _wait(runs, limits, variables, known), limits, known)


def has_files_of_tasks(hooks: Sequence[Any]) -> bool:
    """Return whether one of the hooks is a file of tasks, which only the role can run."""
    return any(hook.get("tasks") for hook in hooks)


def _wait(
    runs: Sequence[Run], limits: Limits, variables: Mapping[str, Any], known: Mapping[str, Record]
) -> list[Waiting]:
    """Return the runs as they wait: the longest last time first, and one that never ran counts as long."""
    pairs = {run["id"]: pair_of(run, run["host"], run["repository"]["host"], variables) for run in runs}
    check_pairs(pairs, limits, _LIMITS)
    seconds = {name: float(record.get("duration") or 0) for name, record in known.items()}
    longest = max(seconds.values(), default=0.0)
    return [
        Waiting(rank(run["priority"], seconds.get(run["id"]) or longest, number), run["id"], pairs[run["id"]])
        for number, run in enumerate(runs)
    ]


def _refuse_problems(problems: Sequence[str]) -> None:
    """Tell all that is wrong with the jobs at once. Raises Refusal."""
    if problems:
        raise Refusal("backup_jobs is not valid, and nothing was done:" + "".join(f"\n- {one}" for one in problems))
