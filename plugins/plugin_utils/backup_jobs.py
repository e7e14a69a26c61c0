# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The jobs of the role backup: what each one means, and which client runs when. Pure.

A *job* is an entry of ``backup_jobs`` and may name many hosts; a *run* is one job for one host. Runs that go to one
repository host are dealt to *lanes*: those of a lane go one after the other, and lanes side by side. So no more than
``concurrency`` runs are at work on a repository host at any moment, from their first hook to their last check, and the
bandwidth that is divided by the lanes is never exceeded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import policy, subset
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.names import check_part

from .folders import goes_back, within
from .units import parse_rate

# What a job may say of its transfer; longhaul.fleet.transfer says what each means.
TRANSFER = (
    "method",
    "encryption",
    "include",
    "exclude",
    "checksum",
    "compress",
    "compress_level",
    "streams",
    "preserve",
    "numeric_ids",
    "one_file_system",
    "delta",
    "timeout",
    "port",
    "port_range",
    "rsync_opts",
    "ssh_ciphers",
    "sftp_buffer_size",
    "sftp_requests",
    "rsyncd_module",
    "rsyncd_user",
    "rsyncd_password",
)
# What an unfinished snapshot holds is this job's alone, so nothing in it is protected, whatever is excluded today.
NOTHING_PROTECTED = "R *"
HOOK_HOSTS = ("client", "repository", "localhost")
LANES = "longhaul_backup"  # the group of the lanes, which are no hosts

Groups = Mapping[str, Sequence[str]]


def clients(job: Mapping[str, Any], groups: Groups) -> list[str]:
    """Give the inventory hosts that a job backs up, each once. ``groups`` are Ansible's, with ``all``."""
    named = [job["host"]] if job.get("host") else []
    named += job.get("hosts") or [] if not isinstance(job.get("hosts"), str) else [job["hosts"]]
    found: dict[str, None] = {}
    for name in named:
        for host in groups[name] if name in groups and name not in groups["all"] else [name]:
            found[host] = None
    return [host for host in found if host not in groups.get(LANES, ())]


def as_names(only: Sequence[str] | str) -> list[str]:
    """Give the names of ``backup_only``, which comes as one text from ``-e backup_only=data,web1``."""
    return [name.strip() for name in only.split(",") if name.strip()] if isinstance(only, str) else list(only)


def paths(job: Mapping[str, Any]) -> list[str]:
    """Give the paths of a job, in one form."""
    return [os.path.normpath(path) for path in _given_paths(job)]


def _given_paths(job: Mapping[str, Any]) -> list[str]:
    src = job.get("src")
    return [str(path) for path in ([src] if isinstance(src, str) else src or [])]


def sources(job: Mapping[str, Any]) -> list[dict[str, str]]:
    """Give for each path where its contents come from, and the folder in the snapshot's tree that they go to.

    The contents of a single path are the tree itself. Several have a folder each, by their last name.
    """
    found = paths(job)
    parts = [""] if len(found) == 1 else [os.path.basename(path) for path in found]
    return [{"src": path.rstrip("/") + "/", "part": part} for path, part in zip(found, parts)]


def make_runs(
    jobs: Sequence[Mapping[str, Any]],
    groups: Groups,
    *,
    only: Sequence[str] = (),
    concurrency: int = 1,
    bwlimit: str = "0",
    direction: str = "pull",
    seconds: Mapping[str, float] | None = None,
) -> list[dict[str, Any]]:
    """Give the runs of jobs without problems, those of one lane in their order.

    ``only`` are names of jobs, of hosts, or ``host/job``; empty means all. ``bwlimit`` is that of a repository host.
    ``seconds`` says how long runs took before, by their id: the longest begin first.
    """
    only = as_names(only)
    runs = [_run(job, host, direction) for job in jobs for host in clients(job, groups)]
    runs = [run for run in runs if not only or {run["id"], run["name"], run["host"]} & set(only)]
    by_repository: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        by_repository.setdefault(run["repository"]["host"], []).append(run)
    for mine in by_repository.values():
        lanes = max(1, min(concurrency, len(mine)))
        _deal(mine, lanes, seconds or {})
        for run in mine:
            run["transfer"]["bwlimit"] = _rate(bwlimit, run.pop("bwlimit"), lanes)
    return sorted(runs, key=lambda run: (run["lane"], run["turn"]))


def _deal(runs: list[dict[str, Any]], lanes: int, seconds: Mapping[str, float]) -> None:
    """Give each run its lane, the longest first to the lane with the least; one that never ran counts as long."""
    known = [seconds[run["id"]] for run in runs if run["id"] in seconds]
    unknown = max(known, default=1.0)
    work = [0.0] * lanes
    for turn, run in enumerate(sorted(runs, key=lambda run: -seconds.get(run["id"], unknown))):
        lane = work.index(min(work))
        work[lane] += max(1.0, seconds.get(run["id"], unknown))
        run.update(lane=f"{run['repository']['host']}.backup-lane-{lane + 1}", turn=turn)


def _rate(of_host: str, of_job: str, lanes: int) -> str:
    """Give the rate of a run: its lane's share, or less where the job says so. 0 is no limit."""
    whole, own = parse_rate(str(of_host)), parse_rate(str(of_job))
    rates = [rate for rate in (max(1, whole // lanes) if whole else 0, own) if rate]
    return str(min(rates, default=0))


def _run(job: Mapping[str, Any], host: str, direction: str) -> dict[str, Any]:
    transfer = {key: job[key] for key in TRANSFER if job.get(key) is not None}
    rules = list(job.get("filter") or [])
    if rules or job.get("include") or job.get("exclude"):
        transfer["filter"] = [NOTHING_PROTECTED, *rules]
    transfer["connect"] = job.get("direction") or direction
    return {
        "id": f"{host}/{job['name']}",
        "name": job["name"],
        "host": host,
        "repository": {"host": job["repository"]["host"], "path": os.path.normpath(job["repository"]["path"])},
        "sources": sources(job),
        "transfer": transfer,
        "bwlimit": str(job.get("bwlimit") or 0),
        "verify": job.get("verify") or "size",
        "keep": dict(job["keep"]),
        "timezone": job.get("timezone") or "UTC",
        "shrink_limit": float(job.get("shrink_limit", 50)),
        "check_share": job.get("check_share") or "",
        "check_level": job.get("check_level") or "contents",
        "stale_after": policy.span(job.get("stale_after") or "", "stale_after"),
        "before": list(job.get("before") or []),
        "after": list(job.get("after") or []),
    }


def problems(jobs: Sequence[Any], groups: Groups, only: Sequence[str] = ()) -> list[str]:
    """Give a sentence for each problem of a list of jobs: what is missing, unknown, there twice or in another's way."""
    found = []
    seen: dict[str, int] = {}
    for number, job in enumerate(jobs, 1):
        if not isinstance(job, Mapping):
            found.append(f"job number {number}: it is no dictionary with name, host, src, repository and keep")
            continue
        called = f"job {job['name']}" if job.get("name") else f"job number {number}"
        own = [problem for look in _LOOKS for problem in look(job, groups)]
        for host in clients(job, groups) if not own else ():
            other = seen.setdefault(f"{host}/{job['name']}", number)
            if other != number:
                own.append(f"job number {other} has this name on {host}, too, and both would write to one folder")
        found += [f"{called}: {problem}" for problem in own]
    known = {word for run in seen for word in (run, *run.split("/", 1))}
    return found + [
        f"backup_only names {name}, and there is no such job or host in the jobs"
        for name in as_names(only)
        if name not in known
    ]


def _about_hosts(job: Mapping[str, Any], groups: Groups) -> list[str]:
    found = []
    if not job.get("name"):
        found.append("name is missing")
    else:
        found += _refused(check_part, "name", str(job["name"]))
    named = clients(job, groups)
    if not named:
        found.append("host (or hosts) is missing, or its groups are empty")
    for host in named:
        if host not in groups["all"]:
            found.append(f"{host} is no host and no group of the inventory; its variables would say how to reach it")
        else:
            found += _refused(check_part, "host", host)
    return found


def _about_repository(job: Mapping[str, Any], groups: Groups) -> list[str]:
    repository = job.get("repository")
    if not isinstance(repository, Mapping) or not repository.get("host") or not repository.get("path"):
        return ["repository is missing: {host: HOST, path: /ABSOLUTE/PATH}"]
    found = []
    host, path = repository["host"], str(repository["path"])
    if host not in groups["all"]:
        found.append(f"the repository's host {host} is not in the inventory; its variables would say how to reach it")
    if not path.startswith("/"):
        found.append(f"the repository's path {path} is not absolute, and could be anywhere")
    elif goes_back(path):
        found.append(f"the repository's path {path} has '..' in it, and could be anywhere: name the folder itself")
    elif host in clients(job, groups):
        found += [
            f"the repository {path} lies inside {src} on the same host, so a backup would contain itself and all others"
            for src in paths(job)
            if within(os.path.normpath(path), src)
        ]
    return found


def _about_paths(job: Mapping[str, Any], _groups: Groups) -> list[str]:
    if not job.get("src"):
        return ["src is missing"]
    found = [f"src {path} is not an absolute path" for path in paths(job) if not path.startswith("/")]
    found += [
        f"src {path} has '..' in it, which leads elsewhere behind a symbolic link: name the folder itself"
        for path in _given_paths(job)
        if goes_back(path)
    ]
    if found:
        return found
    named: dict[str, list[str]] = {}
    for path in paths(job):
        named.setdefault(os.path.basename(path), []).append(path)
    if len(paths(job)) > 1:
        found += [
            f"{' and '.join(same)} end in one name, and each path of several becomes a folder of that name in the "
            "snapshot: make two jobs of them, or back up the folder above"
            for name, same in named.items()
            if len(same) > 1
        ]
        if "" in named:
            found.append("src / has no name of its own, so it cannot be one of several: it holds the others anyway")
    return found


def _about_figures(job: Mapping[str, Any], _groups: Groups) -> list[str]:
    keep = job.get("keep")
    found = []
    if keep is not None and not isinstance(keep, Mapping):
        found.append("keep is no dictionary such as {daily: 7, weekly: 5, monthly: 12}")
    else:
        found += _refused(policy.parse, keep or {})
    found += _refused(policy.span, str(job.get("stale_after") or ""), "stale_after")
    if job.get("check_share"):
        found += _refused(subset.parse, str(job["check_share"]))
    try:
        parse_rate(str(job.get("bwlimit") or 0))
    except ValueError as error:
        found.append(f"bwlimit: {error}")
    try:
        if not 0 <= float(job.get("shrink_limit", 50)) <= 100:
            raise ValueError
    except (TypeError, ValueError):
        found.append(f"shrink_limit is {job['shrink_limit']}: give per cent, from 0 to 100")
    return found


def _about_hooks(job: Mapping[str, Any], groups: Groups) -> list[str]:
    found = []
    for when in ("before", "after"):
        for hook in job.get(when) or []:
            if not isinstance(hook, Mapping) or bool(hook.get("command")) == bool(hook.get("tasks")):
                hidden = isinstance(hook, Mapping) and hook.get("no_log")
                said = f"it has {', '.join(map(str, hook))}" if hidden else hook
                found.append(f"a hook of {when} has not exactly one of command and tasks: {said}")
            elif hook.get("host", "client") not in HOOK_HOSTS and hook["host"] not in groups["all"]:
                found.append(
                    f"a hook of {when} runs on {hook['host']}, which is neither client nor repository nor in the "
                    "inventory"
                )
    return found


_LOOKS = (_about_hosts, _about_repository, _about_paths, _about_figures, _about_hooks)


def _refused(look: Any, *arguments: Any) -> list[str]:
    try:
        look(*arguments)
    except Refused as refused:
        return [str(refused)]
    return []
