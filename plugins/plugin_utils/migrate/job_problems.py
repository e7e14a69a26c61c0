# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a list of migration jobs, before any host is asked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.user_options import check_user_options

from ..folders import inside
from ..roots import child_name

REQUIRED = ("name", "src_host", "src", "dest_host", "dest")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def find_problems(jobs: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> list[str]:
    """Return a sentence for each problem: what is missing, unknown, there twice, or would destroy another's work."""
    problems = []
    for number, job in enumerate(jobs, 1):
        called = f"job {job['name']}" if job.get("name") else f"job number {number}"
        found = _problems_of_one(job, hosts)
        if not found:
            found = [problem for other in jobs[: number - 1] for problem in _problems_of_two(other, job)]
        problems += [f"{called}: {problem}" for problem in found]
    return problems


def arrival(job: Mapping[str, Any]) -> str:
    """Return the directory at the destination that will hold what the source directory holds now."""
    src, dest = str(job["src"]), str(job["dest"])
    return os.path.normpath(dest if src.endswith("/") else os.path.join(dest, child_name(src)))


def _problems_of_one(job: Mapping[str, Any], hosts: Sequence[str]) -> list[str]:
    problems = [f"{key} is missing" for key in REQUIRED if not job.get(key)]
    if job.get("name") and not NAME.match(str(job["name"])):
        problems.append("its name may have letters, digits, dots, dashes and underscores; files are named after it")
    for key in ("src_host", "dest_host"):
        if job.get(key) and job[key] not in hosts:
            problems.append(f"{key} {job[key]} is not in the inventory; its variables would say how to reach it")
    for key in ("src", "dest"):
        if job.get(key) and not str(job[key]).startswith("/"):
            problems.append(f"{key} {job[key]} is not an absolute path")
    problems += _problems_of_rsync_opts(job.get("rsync_opts") or [])
    if problems or job["src_host"] != job["dest_host"]:
        return problems
    origin, target = os.path.normpath(str(job["src"])), arrival(job)
    if origin == target:
        problems.append(f"source and destination are the same directory, {origin}")
    elif inside(target, origin):
        problems.append(f"the destination {target} lies inside the source {origin}, so the copy would contain itself")
    return problems


def _problems_of_rsync_opts(options: Sequence[str]) -> list[str]:
    problems = []
    for option in map(str, options):
        try:
            check_user_options([option])
        except TransferFailed as error:
            problems.append(str(error))
            continue
        try:
            check_user_options([option], compared=True)
        except TransferFailed:
            problems.append(
                f"rsync_opts: with {option} the destination is not the same as the source, and a migration compares "
                "the two before it ends. Leave it out"
            )
    return problems


def _problems_of_two(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return conflicts between two jobs. Problems of a single job are reported elsewhere."""
    if one.get("name") == other["name"]:
        return ["there are two jobs of this name; give each a name of its own"]
    if not (one.get("src") and one.get("dest")) or one.get("dest_host") != other["dest_host"]:
        return []
    first, second = arrival(one), arrival(other)
    if first == second and (one.get("delete") or other.get("delete")):
        return [f"it and job {one['name']} both go to {first}, and delete would remove what the other one brings"]
    for outer, inner, path in ((one, other, second), (other, one, first)):
        if inside(path, arrival(outer)) and outer.get("delete"):
            return [f"delete of job {outer['name']} would remove {path}, which job {inner['name']} brings"]
    return []
