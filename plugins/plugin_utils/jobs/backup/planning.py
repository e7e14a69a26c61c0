# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a run: the backups of its jobs, those with files of tasks as hooks apart, and their limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...common.refusal import Refusal
from ...fleet.limits import Limits, check_pairs, parse_limits
from ...fleet.queue import Waiting, rank
from ...fleet.scheduler import pair_of
from ..hooks import find_file_problems
from ..mistakes import refuse_variables
from .drill import is_due
from .jobs import Run, find_used_folders, make_runs, share_bandwidth, with_drill
from .state import BackupRecord
from .store import BackupStore

_LIMITS = "fleet_limits"


class Plan(NamedTuple):
    """The backups of a run, each in the order in which they begin."""

    runs: list[Waiting]  # those without files of tasks, which run at once, within the limits
    hooked: list[Waiting]  # those with files of tasks, of which each repository host makes one after the other
    by_id: Mapping[str, Run]
    limits: Limits
    known: Mapping[str, BackupRecord]  # the last records, by id
    used: Mapping[str, list[str]]  # repositories, copies and sources on each host that drills restore to


def find_defaults(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options for all jobs, by the options of the action."""
    return with_drill(options["defaults"], options["drill"])


def apply_defaults(jobs: Sequence[Any], defaults: Mapping[str, Any]) -> list[Any]:
    """Return the jobs with what counts for all of them; what is no job stays, and is reported as a problem."""
    return [{**defaults, **job} if isinstance(job, Mapping) else job for job in jobs]


def plan(
    options: Mapping[str, Any],
    variables: Mapping[str, Any],
    store: BackupStore,
    load: Callable[[str], object] | None = None,
) -> Plan:
    """Return the backups that the action was asked for. Raises Refusal and LimitError before anything begins.

    ``options`` are those of the module backup_run, and ``variables`` those of its task. ``load`` reads YAML, to look at
    the files of tasks; None: a call before this one has done that. In check mode no hook runs, so
    no backup has files of tasks then.
    """
    own = options["repository_hosts"]
    jobs, groups = apply_defaults(options["jobs"], find_defaults(options)), variables["groups"]
    drills_only = options["drill_only"]
    runs = [
        run
        for run in make_runs(jobs, groups, options["only"], options["direction"])
        if (not own or run["repository"]["host"] in own) and (run["drill"] is not None or not drills_only)
    ]
    if drills_only and not runs and not own:
        raise Refusal(
            "Nothing was done: backup_drill_only is set, and no job that is asked for has drills. Set backup_drill, or "
            "drill of a job"
        )
    for run in runs:
        run["before"] = [*options["before"], *run["before"]]
        run["after"] = [*run["after"], *options["after"]]
    if load is not None:
        problems = find_file_problems(_hooks_of(runs), options["hook_folder"], load)
        if problems:
            raise Refusal(refuse_variables("backup", problems))
    known = {record.id: record for record in store.read_all(run["id"] for run in runs)}
    hooked: list[Run] = []
    others: list[Run] = []
    for run in runs:
        drill, last = run["drill"], known.get(run["id"])
        due = is_due(drill, last.drill if last else None, time.time(), drills_only)
        validations = [drill.validate] if drill is not None and due else []
        hooks = [*validations, *([] if drills_only else [*run["before"], *run["after"]])]
        has_tasks = store.writes and any(hook.get("tasks") for hook in hooks)
        (hooked if has_tasks else others).append(run)
    concurrency = 1 if own else max(1, options["concurrency"])
    # They never run at once, so both have all of the bandwidth.
    share_bandwidth(others, concurrency, options["bwlimit"])
    share_bandwidth(hooked, 1, options["bwlimit"])
    limits = replace(parse_limits(options["limits"], _LIMITS), per_dest=concurrency)
    drilled = {run["drill"].host for run in runs if run["drill"]}
    everywhere = find_used_folders(make_runs(jobs, groups)) if drilled else {}
    return Plan(
        runs=_wait(others, limits, variables, known),
        hooked=_wait(hooked, limits, variables, known),
        by_id={run["id"]: run for run in runs},
        limits=limits,
        known=known,
        used={host: everywhere.get(host, []) for host in drilled},
    )


def _hooks_of(runs: Sequence[Run]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what to call each hook, and the hook."""
    for run in runs:
        for when, hooks in (("before", run["before"]), ("after", run["after"])):
            for hook in hooks:
                yield f"job {run['name']}: hook {hook.get('name') or 'without a name'} of {when}", hook
        if run["drill"] is not None:
            yield f"job {run['name']}: validate of drill", run["drill"].validate


def _wait(
    runs: Sequence[Run], limits: Limits, variables: Mapping[str, Any], known: Mapping[str, BackupRecord]
) -> list[Waiting]:
    """Return the runs as they wait: the longest last time first, and one that never ran counts as long."""
    pairs = {run["id"]: pair_of(run, run["host"], run["repository"]["host"], variables) for run in runs}
    check_pairs(pairs, limits, _LIMITS)
    seconds = {name: record.duration for name, record in known.items()}
    longest = max(seconds.values(), default=0.0)
    return sorted(
        Waiting(rank(run["priority"], seconds.get(run["id"]) or longest, number), run["id"], pairs[run["id"]])
        for number, run in enumerate(runs)
    )
