# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a list of migration jobs, before any host is asked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.user_options import check_user_options

from ..fleet.slices import at_most, explain_missing
from ..folders import inside
from ..roots import child_name

REQUIRED = ("name", "src_host", "src", "dest_host", "dest")
HOSTS = ("src_host", "dest_host")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def find_problems(
    jobs: Sequence[Mapping[str, Any]],
    hosts: Iterable[str],
    defaults: Mapping[str, Any] = MappingProxyType({}),
    only: Iterable[str] = (),
    agreed: Iterable[str] = (),
    rehearses: bool = False,
    stops: bool = False,
    revives: bool = False,
    automated: bool = False,
) -> list[str]:
    """Return a sentence for each problem: what is missing, unknown, there twice, or would destroy another's work.

    ``defaults`` count for all jobs. ``only`` and ``agreed`` name jobs: those that run, and those that may delete.
    A run that ``rehearses`` must bring back what it stops; ``stops`` and ``revives`` say whether hooks for all jobs do.
    ``automated`` says whether AWX, an automation controller or ansible-runner started it.
    """
    known, others, only = frozenset(hosts), _Others(), list(only)
    problems, names, named = [], set(), set()
    for number, written in enumerate(jobs, 1):
        job = {**defaults, **written}  # a plain one: each look at a container of Ansible's is a template
        called = f"job {job['name']}" if job.get("name") else f"job number {number}"
        found = _problems_of_one(job, known) or others.conflicts(job)
        if rehearses and (not only or str(job.get("name")) in only):
            found = found + _problems_of_rehearsal(job, stops, revives)
        problems += [f"{called}: {problem}" for problem in found]
        others.add(job)
        names.add(job.get("name", ""))
        named |= {str(job[key]) for key in HOSTS if job.get(key)}
    return [
        *_unknown_names("migrate_only", only, names),
        *_unknown_names("migrate_allow_delete", agreed, names | {"all", "true"}),
        *at_most(problems),
        *explain_missing(named - known, len(named), "migrate_only", automated),
    ]


def _problems_of_rehearsal(job: Mapping[str, Any], stops: bool, revives: bool) -> list[str]:
    if not (stops or job.get("before_cutover")) or revives or job.get("cutover_failed"):
        return []
    return [
        "a rehearsal stops the source with before_cutover, and no hook of cutover_failed would put it back in service. "
        "Add one"
    ]


def _unknown_names(option: str, given: Iterable[str], names: AbstractSet[str]) -> list[str]:
    unknown = [name for name in dict.fromkeys(given) if name not in names]
    return [f"{option} names {', '.join(unknown)}, and there is no such job"] if unknown else []


def arrival(job: Mapping[str, Any]) -> str:
    """Return the directory at the destination that will hold what the source directory holds now."""
    src, dest = str(job["src"]), str(job["dest"])
    return os.path.normpath(dest if src.endswith("/") else os.path.join(dest, child_name(src)))


def _problems_of_one(job: Mapping[str, Any], hosts: AbstractSet[str]) -> list[str]:
    problems = [f"{key} is missing" for key in REQUIRED if not job.get(key)]
    if job.get("name") and not NAME.match(str(job["name"])):
        problems.append("its name may have letters, digits, dots, dashes and underscores; files are named after it")
    if job.get("cutover_group") and not NAME.match(str(job["cutover_group"])):
        problems.append("cutover_group may have letters, digits, dots, dashes and underscores")
    for key in HOSTS:
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


class _Others:
    """The jobs before one, found by what they share with it: to compare each with each takes minutes for thousands."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._at: dict[tuple[str, str], _Arrivals] = {}  # by host and path: the jobs that arrive there
        self._below: dict[tuple[str, str], tuple[str, str]] = {}  # the first that arrives below: its path and its name

    def add(self, job: Mapping[str, Any]) -> None:
        """Add a job, as far as it says where it arrives."""
        name, host = str(job.get("name", "")), str(job.get("dest_host", ""))
        self._names.add(name)
        if not (job.get("src") and job.get("dest")):
            return
        path = arrival(job)
        self._at.setdefault((host, path), _Arrivals()).add(name, bool(job.get("delete")))
        for folder in _above(path):
            self._below.setdefault((host, folder), (path, name))

    def conflicts(self, job: Mapping[str, Any]) -> list[str]:
        """Return the conflicts of a job, which has no problem of its own, with those before it."""
        if job["name"] in self._names:
            return ["there are two jobs of this name; give each a name of its own"]
        host, path, deletes = job["dest_host"], arrival(job), bool(job.get("delete"))
        same = self._at.get((host, path), _Arrivals())
        other = same.first if deletes else same.deleting
        found = []
        if other is not None:
            found.append(f"it and job {other} both go to {path}, and delete would remove what the other one brings")
        for folder in _above(path):
            outer = self._at.get((host, folder), _Arrivals()).deleting
            if outer is not None:
                found.append(f"delete of job {outer} would remove {path}, which job {job['name']} brings")
        if deletes and (host, path) in self._below:
            inner, brought_by = self._below[host, path]
            found.append(f"delete of job {job['name']} would remove {inner}, which job {brought_by} brings")
        return found


class _Arrivals:
    """Jobs that arrive at one path: the names of the first one, and of the first that deletes."""

    def __init__(self) -> None:
        self.first: str | None = None
        self.deleting: str | None = None

    def add(self, name: str, deletes: bool) -> None:
        self.first = name if self.first is None else self.first
        if deletes and self.deleting is None:
            self.deleting = name


def _above(path: str) -> Iterator[str]:
    """Yield the folders above a normalised path, the nearest first."""
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        yield path
