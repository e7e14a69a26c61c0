# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The jobs of the role backup: what each one means, and which client runs when. Pure.

A *job* is an entry of ``backup_jobs`` and may name many hosts; a *run* is one job for one host. The bandwidth of a
repository host is divided among the runs that it may make at once, so it is never exceeded.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.longhaul.fleet.plugins.module_utils._model.rate import parse_rate
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import policy

from ...hosts.trust import NONE
from ..job_options import passed_on
from ..selection import read_names
from .consistent import DumpsInTree, Preparation, dumps_in_tree, plan_preparation
from .drill import DrillSettings, read_drill

_OF_THE_LINE = (
    *("method", "encryption", "trust", "compress", "compress_level", "streams", "congestion", "timeout"),
    *("port", "port_range", "ssh_ciphers"),
)
# Options of longhaul.fleet.transfer that a job does not have, and why; it has all others.
SET_BY_ROLE = {
    name: f"is an option that a backup sets itself: {why}"
    for why, names in {
        "set host or hosts": ("src_host",),
        "set src": ("src",),  # which may be several
        "set repository": ("dest_host", "dest"),
        "set direction": ("connect",),
        "set verify of the job": ("verify",),
        "a snapshot has what its source has": ("delete", "max_delete"),
        "files of earlier snapshots are linked": ("link_dest", "link_dest_exclude"),
        "files of earlier snapshots never change": ("inplace",),
        "a snapshot has the owners of its source. Map them in restore_transfer": ("owner_map", "owner_warnings"),
        "an interrupted backup is continued": ("partial",),
        "a snapshot is on the disk before it is complete": ("sync",),
        "it waits for each transfer": ("wait", "collect"),
    }.items()
    for name in names
}
OF_ONE_JOB = ("name", "priority", "link")  # options that cannot be set for all jobs
# What an unfinished snapshot holds is this job's alone, so nothing in it is protected, whatever is excluded today.
NOTHING_PROTECTED = "R *"
LEAVING_OUT = ("include", "exclude", "exclude_if_present", "exclude_caches")

Groups = Mapping[str, Sequence[str]]


class Repository(TypedDict):
    """Where the snapshots of a run are."""

    host: str
    path: str


class Copy(TypedDict):
    """A repository that gets copies of the snapshots of a run."""

    host: str
    path: str
    keep: dict[str, object]  # as that of the run
    bwlimit: str


class Source(TypedDict):
    """A path that is backed up."""

    src: str  # its contents go
    part: str  # to this folder of the snapshot's tree; empty: to the tree itself


class Run(TypedDict):
    """One job for one host, as the role keeps it between its tasks."""

    id: str  # host/name
    name: str  # of the job
    host: str
    repository: Repository
    sources: list[Source]
    transfer: dict[str, object]  # options of longhaul.fleet.transfer
    verify: str
    copies: list[Copy]
    keep: dict[str, object]  # the policy, as longhaul.fleet.snapshot takes it
    timezone: str
    shrink_limit: float  # percent
    change_limit: float  # percent
    read_only: bool  # the folders of its snapshots
    check_subset: str  # empty: nothing is checked
    check_level: str
    stale_after: int | None  # seconds
    min_free: str  # of the repository's file system, before it begins; empty: nothing
    priority: int
    link: str  # that the data uses; empty: what the variables of its hosts say
    before: list[Mapping[str, Any]]  # hooks, also those of all jobs
    after: list[Mapping[str, Any]]
    consistent: Preparation | None  # before the transfers; None: they read the live trees
    drill: DrillSettings | None  # None: no restore is practised


def clients(job: Mapping[str, Any], groups: Groups) -> list[str]:
    """Return the inventory hosts that a job backs up, each once. ``groups`` are Ansible's, with ``all``."""
    named = [job["host"]] if job.get("host") else []
    named += job.get("hosts") or [] if not isinstance(job.get("hosts"), str) else [job["hosts"]]
    found: dict[str, None] = {}
    for name in named:
        for host in groups[name] if name in groups and name not in groups["all"] else [name]:
            found[host] = None
    return list(found)


def paths(job: Mapping[str, Any]) -> list[str]:
    """Return the paths of a job, in one form."""
    return [os.path.normpath(path) for path in given_paths(job)]


def given_paths(job: Mapping[str, Any]) -> list[str]:
    """Return the paths of a job as they were written."""
    src = job.get("src")
    return [str(path) for path in ([src] if isinstance(src, str) else src or [])]


def sources(job: Mapping[str, Any]) -> list[Source]:
    """Return for each path where its contents come from, and the folder in the snapshot's tree that they go to.

    The contents of a single path are the tree itself. Several have a folder each, by their last name.
    """
    found = paths(job)
    parts = [""] if len(found) == 1 else [os.path.basename(path) for path in found]
    return [{"src": path.rstrip("/") + "/", "part": part} for path, part in zip(found, parts)]


def make_runs(
    jobs: Sequence[Mapping[str, Any]], groups: Groups, only: Sequence[str] = (), direction: str = "pull"
) -> list[Run]:
    """Return the runs of jobs without problems, in their order.

    ``only`` are names of jobs, of hosts, or ``host/job``; empty means all.
    """
    wanted = set(read_names(only))
    runs = [_run(job, host, direction) for job in jobs for host in clients(job, groups)]
    return [run for run in runs if not wanted or {run["id"], run["name"], run["host"]} & wanted]


def share_bandwidth(runs: Sequence[Run], concurrency: int, bwlimit: str) -> None:
    """Set the rate of each run. ``bwlimit`` is that of a repository host, which makes ``concurrency`` runs at once."""
    count = Counter(run["repository"]["host"] for run in runs)
    for run in runs:
        at_once = max(1, min(concurrency, count[run["repository"]["host"]]))
        run["transfer"]["bwlimit"] = _rate(bwlimit, str(run["transfer"]["bwlimit"]), at_once)


def _rate(of_host: str, of_job: str, at_once: int) -> str:
    """Return the rate of a run: its share, or less where the job says so. 0 is no limit."""
    whole, own = parse_rate(str(of_host)), parse_rate(str(of_job))
    rates = [rate for rate in (max(1, whole // at_once) if whole else 0, own) if rate]
    return str(min(rates, default=0))


def _copy(job: Mapping[str, Any], copy: Mapping[str, Any]) -> Copy:
    return {
        "host": copy["host"],
        "path": os.path.normpath(copy["path"]),
        "keep": dict(copy.get("keep") or job["keep"]),
        "bwlimit": str(copy.get("bwlimit") or 0),
    }


def _run(job: Mapping[str, Any], host: str, direction: str) -> Run:
    """Return the run of a job for a host. Its bandwidth is what the job says."""
    transfer = passed_on(job, SET_BY_ROLE)
    given = job.get("filter") or []
    rules = given.split(",") if isinstance(given, str) else list(given)  # as Ansible reads a text for a list
    if rules or any(job.get(name) for name in LEAVING_OUT):
        transfer["filter"] = [NOTHING_PROTECTED, *rules]
    transfer.setdefault("trust", NONE)
    transfer["connect"] = job.get("direction") or direction
    transfer["bwlimit"] = str(job.get("bwlimit") or 0)
    place = os.path.normpath(job["repository"]["path"])
    named = "\0".join(("consistent", job["repository"]["host"], place, host, job["name"]))
    identity = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    found = sources(job)
    return {
        "id": f"{host}/{job['name']}",
        "name": job["name"],
        "host": host,
        "repository": {"host": job["repository"]["host"], "path": place},
        "sources": found,
        "transfer": transfer,
        "verify": job.get("verify") or "size",
        "copies": [_copy(job, copy) for copy in job.get("copies") or []],
        "keep": dict(job["keep"]),
        "timezone": job.get("timezone") or "UTC",
        "shrink_limit": float(job.get("shrink_limit", 50)),
        "change_limit": float(job.get("change_limit", 50)),
        "read_only": boolean(job.get("read_only") or False),
        "check_subset": job.get("check_subset") or "",
        "check_level": job.get("check_level") or "contents",
        "stale_after": policy.span(job.get("stale_after") or "", "stale_after"),
        "min_free": str(job.get("min_free") or ""),
        "priority": int(job.get("priority") or 0),
        "link": str(job.get("link") or ""),
        "before": list(job.get("before") or []),
        "after": list(job.get("after") or []),
        "consistent": plan_preparation(job, [one["src"] for one in found], identity),
        "drill": read_drill(job.get("drill"), host, job["repository"]["host"], dumps_of(job)),
    }


def dumps_of(job: Mapping[str, Any]) -> Mapping[str, Sequence[DumpsInTree]]:
    """Return the folders of dumps in the tree of a snapshot, by kind, of a job whose ``consistent`` has no problems."""
    parts = {os.path.normpath(one["src"]): one["part"] for one in sources(job)}
    return dumps_in_tree(plan_preparation(job, list(parts), ""), parts)


def with_drill(defaults: Mapping[str, Any], drill: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options for all jobs, of which ``backup_drill`` is one."""
    return {**({"drill": drill} if drill else {}), **defaults}


def places_of(runs: Iterable[Run]) -> list[Repository | Copy]:
    """Return the repository of each run, followed by those with copies of it."""
    return [place for run in runs for place in (run["repository"], *run["copies"])]


def find_used_folders(runs: Sequence[Run]) -> Mapping[str, list[str]]:
    """Return by host the repositories, also those of copies, and then the sources, in which no drill may restore."""
    found: dict[str, dict[str, None]] = {}
    for place in places_of(runs):
        found.setdefault(place["host"], {})[place["path"]] = None
    for run in runs:
        for source in run["sources"]:
            found.setdefault(run["host"], {})[os.path.normpath(source["src"])] = None
    return {host: list(folders) for host, folders in found.items()}


def folder_of(place: Repository | Copy, run: Run, *below: str) -> str:
    """Return the folder of a job's snapshots in a repository, or a path ``below`` it."""
    return os.path.join(place["path"], run["host"], run["name"], *below)


def line_options(run: Run, *more: str) -> Mapping[str, object]:
    """Return the options of a job's transfer that are about hosts and the line between them, and ``more`` of them."""
    return {name: value for name, value in run["transfer"].items() if name in (*_OF_THE_LINE, *more)}
