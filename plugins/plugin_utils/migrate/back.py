# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that were switched over, turned round: what the new host has goes to a folder beside the old host's tree.

The tree on the old host stays as it was at the switch, so going back is starting it again. What was written on the new
host since then is in the folder beside it, for a person to take from.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from .job_problems import arrival
from .stages import BACK, HOOKS, Stage, stage_of

# What says nothing of the way back: hooks and groups, what belongs to the other host, and what would delete or link.
_LEFT_OUT = (
    *HOOKS,
    "cutover_group",
    "max_delete",
    "link_dest",
    "link_dest_exclude",
    "port",
    "port_range",
    "rsyncd_module",
    "rsyncd_user",
    "rsyncd_password",
)
_CONNECT = {"push": "pull", "pull": "push"}  # so that the same host connects


Job = Mapping[str, Any]


class Back(NamedTuple):
    """The jobs that go back, and why others do not."""

    jobs: list[Job]
    problems: list[str]


def find_back(
    jobs: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    defaults: Mapping[str, Any] = MappingProxyType({}),
    states: Iterable[Job] | None = None,
) -> Back:
    """Return the jobs of these names, turned round, and a sentence for each that cannot be.

    ``defaults`` count for all jobs; ``states`` are what is kept of jobs, as far as they have begun, None if nobody has
    looked.
    """
    known = {str(state["name"]): state for state in states or ()}
    named = {str(job.get("name")): {**defaults, **job} for job in jobs if job.get("name") in names}
    turned, problems = [], []
    for name in dict.fromkeys(names):
        if name not in named:
            problems.append(f"migrate_back names {name}, and there is no such job")
            continue
        job, state = named[name], known.get(name)
        found = _problems(job)
        if states is not None and (state is None or stage_of(state) not in (Stage.SWITCHING, Stage.SWITCHED)):
            found.append(f"it was not switched over, so {job['src_host']} has all that there is")
        problems += [f"job {name}: {problem}" for problem in found]
        turned += [] if found else [turn_round(job)]
    return Back(turned, problems)


def turn_round(job: Job) -> Job:
    """Return the job that copies what a job has brought back into a folder beside its source."""
    return {
        **{key: value for key, value in job.items() if key not in _LEFT_OUT},
        **dict.fromkeys(_LEFT_OUT),  # also where they are options for all jobs
        "name": f"{job['name']}{BACK}",
        "src_host": job["dest_host"],
        "src": f"{arrival(job).rstrip('/')}/",
        "dest_host": job["src_host"],
        "dest": f"{os.path.normpath(str(job['src']))}{BACK}",
        "delete": False,
        "connect": _CONNECT.get(str(job.get("connect")), job.get("connect")),
        "owner_map": _inverted(job.get("owner_map") or {}) or None,
    }


def _problems(job: Job) -> list[str]:
    problems = []
    if os.path.normpath(str(job["src"])) == "/":
        problems.append("its source is /, and nothing lies beside that. Copy back what you need with a job of its own")
    for kind, pairs in (job.get("owner_map") or {}).items():
        came_from: dict[Any, list[str]] = {}
        for old, new in (pairs or {}).items():
            came_from.setdefault(new, []).append(str(old))
        for new, olds in came_from.items():
            if len(olds) > 1:
                problems.append(
                    f"owner_map.{kind} makes {' and '.join(olds)} the same, {new}, so nobody can tell whose the files "
                    "are. Copy them back with a job of its own whose owner_map says so"
                )
    return problems


def _inverted(owner_map: Mapping[str, Mapping[Any, Any] | None]) -> dict[str, dict[Any, Any]]:
    return {kind: {new: old for old, new in pairs.items()} for kind, pairs in owner_map.items() if pairs}
