# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a list of backup jobs, before any host is asked. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._model.rate import parse_rate
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import policy, room, subset
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.names import check_part

from ...common.argument_spec import Spec
from ...common.paths import goes_back, within
from ...hosts.trust import FULL, NONE
from ..hooks import find_hook_problem, is_hidden
from ..job_options import find_transfer_problems, passed_on, spec_with_jobs
from ..mistakes import check_by_spec, check_jobs, find_misspelt, refuse_variables, suggest_host, tell_unknown_host
from ..notify import find_notify_problems
from ..selection import at_most, explain_missing, read_names
from .consistent import find_consistent_problems, find_dump_folders
from .drill import read_drill
from .jobs import (
    OF_ONE_JOB,
    SET_BY_ROLE,
    Groups,
    Run,
    clients,
    dumps_of,
    find_used_folders,
    given_paths,
    make_runs,
    paths,
    places_of,
    with_drill,
)

HOOK_HOSTS = ("client", "repository", "localhost")
_HOOK_KINDS = ("command", "module", "tasks")
_ROLE, _GUIDE = "backup", "ansible-doc -t role longhaul.fleet.backup"
_NEEDED = ("name", "host", "src", "repository", "keep")
_NO_JOBS = """\
There are no jobs: backup_jobs is not set. Write a file jobs.yml, for example

backup_jobs:
  - name: data
    hosts: [web1.example.com, web2.example.com]
    src: /srv/data
    repository: {host: vault.example.com, path: /srv/backup}
    keep: {daily: 7, weekly: 5, monthly: 12}

and run: ansible-playbook longhaul.fleet.backup -i INVENTORY -e @jobs.yml"""


def refuse_jobs(
    options: Mapping[str, Any],
    groups: Groups,
    automated: bool = False,
    variables: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Return all that is wrong with the variables of the role as the user wrote them, and what to do; empty: nothing.

    ``options`` are those of the action, as Ansible has templated them. For ``automated`` see find_problems, and
    ``variables`` are all that there are.
    """
    spec, jobs = spec_with_jobs(_ROLE, SET_BY_ROLE, OF_ONE_JOB), options["jobs"]
    given = {f"{_ROLE}_{name}": value for name, value in options.items() if f"{_ROLE}_{name}" in spec}
    problems = find_misspelt(variables, spec, given)
    listed = isinstance(jobs, Sequence) and not isinstance(jobs, str)
    if not jobs and not options.get("repository_hosts") and not problems:
        return _NO_JOBS
    if listed or not jobs:
        given.pop("backup_jobs")  # checked below, each with its name
    checked = check_by_spec(given, spec, _GUIDE)
    values: dict[str, Any] = {name: checked.values.get(name, option.get("default")) for name, option in spec.items()}
    hooks = {f"backup_{when}": values[f"backup_{when}"] for when in ("before", "after")}
    problems += checked.problems + find_notify_problems(values["backup_notify"] or (), "backup_notify")
    if listed:
        problems += find_problems(
            jobs,
            groups,
            values["backup_only"],
            automated,
            hooks,
            with_drill(values["backup_defaults"], values["backup_drill"]),
            spec["backup_jobs"]["options"],
        )
    return refuse_variables(_ROLE, problems)


def find_problems(
    jobs: Sequence[Any],
    groups: Groups,
    only: Sequence[str] = (),
    automated: bool = False,
    hooks: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    defaults: Mapping[str, Any] = MappingProxyType({}),
    spec: Spec | None = None,
) -> list[str]:
    """Return a sentence for each problem of the jobs: what is missing, unknown, there twice or in another's way.

    ``automated`` says whether AWX, an automation controller or ansible-runner started the run. ``hooks`` are those of
    all jobs, by their variable, and ``defaults`` are the options for all jobs. ``spec`` is that of a job,
    None if it was checked before.
    """
    found = [problem for name, those in hooks.items() for problem in _problems_of_hooks(name, those, groups)]
    seen: dict[str, int] = {}
    named: set[str] = set()
    sound: list[Mapping[str, Any]] = []
    for number, one in enumerate(check_jobs(jobs, spec, _NEEDED, _GUIDE), 1):
        job, own = {**defaults, **one.checked.values}, [*one.checked.problems]
        named.update(_hosts(job, groups))
        for look, about in _LOOKS.items():
            own += look(job, groups) if not one.checked.wrong & {*about} else []
        for host in clients(job, groups) if not own else ():
            other = seen.setdefault(f"{host}/{job['name']}", number)
            if other != number:
                own.append(f"job number {other} has this name on {host}, too, and both would write to one folder")
        sound += [] if own else [job]
        found += one.tell(own)
    if not found:
        runs = make_runs(sound, groups)
        found += [*_about_drill_folders(runs), *_about_drill_servers(runs), *_about_shared_dumps(runs)]
    known = {word for run in seen for word in (run, *run.split("/", 1))}
    return [
        *at_most(found),
        *(
            f"backup_only names {name}, and there is no such job or host in the jobs"
            for name in read_names(only)
            if name not in known
        ),
        *explain_missing(named - set(groups["all"]), len(named), "backup_only", automated),
    ]


def _hosts(job: Mapping[str, Any], groups: Groups) -> list[str]:
    """Return all hosts that a job names: its clients, and those of its repository and of its copies."""
    places = [job.get("repository"), *_copies(job)]
    named = [str(place.get("host") or "") for place in places if isinstance(place, Mapping)]
    return [*clients(job, groups), *(host for host in named if host)]


def _copies(job: Mapping[str, Any]) -> list[Any]:
    found = job.get("copies") or []
    return list(found) if isinstance(found, Sequence) and not isinstance(found, str) else [found]


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
    host, path = repository["host"], str(repository["path"])
    found = _problems_of_place("the repository's ", host, path, groups)
    if _is_certain(path) and host in clients(job, groups):
        found += [
            f"the repository {path} lies inside {src} on the same host, so a backup would contain itself and all others"
            for src in paths(job)
            if within(os.path.normpath(path), src)
        ]
    return found


def _problems_of_place(whose: str, host: str, path: str, groups: Groups) -> list[str]:
    """Return what is wrong with the host and the path of a repository or a copy."""
    found = []
    if host not in groups["all"]:
        found.append(f"{whose}host {tell_unknown_host(host, groups['all'])}")
    if not path.startswith("/"):
        found.append(f"{whose}path {path} is not absolute, and could be anywhere")
    elif goes_back(path):
        found.append(f"{whose}path {path} has '..' in it, and could be anywhere: name the folder itself")
    return found


def _is_certain(path: str) -> bool:
    """Return whether a path says where it leads."""
    return path.startswith("/") and not goes_back(path)


def _about_copies(job: Mapping[str, Any], groups: Groups) -> list[str]:
    found: list[str] = []
    repository = job.get("repository")
    taken = [("the repository itself", repository)] if isinstance(repository, Mapping) else []
    for number, copy in enumerate(_copies(job)):
        called = f"copies[{number}]"
        if not isinstance(copy, Mapping) or not copy.get("host") or not copy.get("path"):
            found.append(f"{called} needs a host and a path: {{host: HOST, path: /ABSOLUTE/PATH}}")
            continue
        found += [f"{called}: {problem}" for problem in _problems_of_copy(copy, taken, job, groups)]
        taken.append((called, copy))
    return found


def _problems_of_copy(
    copy: Mapping[str, Any], taken: Sequence[tuple[str, Mapping[str, Any]]], job: Mapping[str, Any], groups: Groups
) -> list[str]:
    """Return what is wrong with one copy; ``taken`` are the places that the job uses already, and what to call them."""
    host, path = str(copy["host"]), str(copy["path"])
    found = _problems_of_place("the ", host, path, groups)
    if host in clients(job, groups):
        found.append(
            f"{host} is a client of the job, and whoever harms its data could harm the copy, too. Choose another host"
        )
    for called, other in taken if _is_certain(path) else ():
        own, others = os.path.normpath(path), os.path.normpath(str(other.get("path") or ""))
        if host == other.get("host") and (within(own, others) or within(others, own)):
            found.append(
                f"{host}:{path} is {called}, or one lies inside the other. A copy is of use only in another place, "
                "such as another host or at least another disk"
            )
    found += _refused(policy.parse, copy["keep"]) if isinstance(copy.get("keep"), Mapping) else []
    try:
        parse_rate(str(copy.get("bwlimit") or 0))
    except ValueError as error:
        found.append(f"bwlimit: {error}")
    return found


def _about_paths(job: Mapping[str, Any], _groups: Groups) -> list[str]:
    if not job.get("src"):
        return ["src is missing"]
    found = [f"src {path} is not an absolute path" for path in paths(job) if not path.startswith("/")]
    found += [
        f"src {path} has '..' in it, which leads elsewhere behind a symbolic link: name the folder itself"
        for path in given_paths(job)
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


def _about_keep(job: Mapping[str, Any], _groups: Groups) -> list[str]:
    keep = job.get("keep")
    if keep is not None and not isinstance(keep, Mapping):
        return ["keep is no dictionary such as {daily: 7, weekly: 5, monthly: 12}"]
    return _refused(policy.parse, keep or {})


def _about_figures(job: Mapping[str, Any], _groups: Groups) -> list[str]:
    found = _refused(policy.span, str(job.get("stale_after") or ""), "stale_after")
    if job.get("check_subset"):
        found += _refused(subset.parse, str(job["check_subset"]))
    if job.get("min_free"):
        found += _refused(room.parse_least_free, str(job["min_free"]))
    for limit in ("shrink_limit", "change_limit"):
        try:
            if not 0 <= float(job.get(limit, 50)) <= 100:
                raise ValueError
        except (TypeError, ValueError):
            found.append(f"{limit} is {job[limit]}: give per cent, from 0 to 100")
    return found


def _about_hooks(job: Mapping[str, Any], groups: Groups) -> list[str]:
    return [
        problem for when in ("before", "after") for problem in _problems_of_hooks(when, job.get(when) or [], groups)
    ]


def _problems_of_hooks(where: str, hooks: Sequence[Any], groups: Groups) -> list[str]:
    found = []
    for hook in hooks:
        if not isinstance(hook, Mapping) or sum(bool(hook.get(kind)) for kind in _HOOK_KINDS) != 1:
            hidden = isinstance(hook, Mapping) and is_hidden(hook)
            said = f"it has {', '.join(map(str, hook))}" if hidden else hook
            found.append(f"a hook of {where} has not exactly one of command, module and tasks: {said}")
        elif problem := find_hook_problem(hook):
            found.append(f"a hook of {where} cannot run: {'see no_log' if is_hidden(hook) else problem}")
        elif hook.get("host", "client") not in HOOK_HOSTS and hook["host"] not in groups["all"]:
            likely = suggest_host(str(hook["host"]), [*HOOK_HOSTS, *groups["all"]])
            found.append(
                f"a hook of {where} runs on {hook['host']}, which is neither client nor repository nor in the "
                f"inventory{likely}"
            )
    return found


def _about_consistent(job: Mapping[str, Any], _groups: Groups) -> list[str]:
    return find_consistent_problems(job, paths(job))


def _about_drill(job: Mapping[str, Any], groups: Groups) -> list[str]:
    drill = job.get("drill")
    if not drill:
        return []
    if not isinstance(drill, Mapping):
        return ["drill is no dictionary such as {every: 7d, share: 1/200, into: {host: HOST, path: PATH}}"]
    is_known = not find_consistent_problems(job, paths(job))
    known = drill if is_known else {**drill, "load": None}
    found = _refused(read_drill, known, "client", "repository", dumps_of(job) if is_known else {})
    host = (drill.get("into") or {}).get("host") if not found else None
    if host and host not in ("client", "repository") and host not in groups["all"]:
        likely = suggest_host(str(host), ["client", "repository", *groups["all"]])
        found.append(f"into of drill names {host}, which is neither client nor repository nor in the inventory{likely}")
    return found + (
        _problems_of_hooks("validate of drill", [drill["validate"]], groups) if drill.get("validate") else []
    )


def _about_drill_folders(runs: Sequence[Run]) -> list[str]:
    """Return why drills cannot restore where they are to, by the paths alone; the host itself follows links."""
    used_on = find_used_folders(runs)
    return [
        f"job {run['name']}: into of drill is {drill.path} on {drill.host}, which is in {used}, a repository or a "
        f"source of a backup there. Name another {'host' if used == '/' else 'folder'}"
        for run in runs
        for drill in ([run["drill"]] if run["drill"] else [])
        for used in used_on.get(drill.host, ())
        if within(drill.path, used)
    ]


def _about_drill_servers(runs: Sequence[Run]) -> list[str]:
    """Return which drills would have a server beside snapshots run what a client that is not trusted calls a dump."""
    kept_on = {place["host"] for place in places_of(runs)}
    return [
        f"job {run['name']}: load of drill has dumps of {run['host']} loaded on {run['drill'].host}, where snapshots "
        "are. A dump is a program that the server runs, and the client could have made it up: load "
        "it on the client itself or on a spare host (into), or set trust: full for the job"
        for run in runs
        if run["drill"] and run["drill"].load and run["transfer"]["trust"] != FULL and run["drill"].host in kept_on
    ]


def _about_shared_dumps(runs: Sequence[Run]) -> list[str]:
    """Return which jobs have their dumps in one folder of a client, where the end of one removes those of the other."""
    taken: dict[str, list[tuple[str, str]]] = {}
    found = []
    for run in runs:
        own = find_dump_folders(run["consistent"]) if run["consistent"] else []
        for into in own:
            found += [
                f"job {run['name']}: consistent has dumps in {into} on {run['host']}, and job {name} in {other}. Each "
                "removes or replaces those of the other: set into of one of them to another folder in its src"
                for name, other in taken.get(run["host"], ())
                if within(into, other) or within(other, into)
            ]
        taken.setdefault(run["host"], []).extend((run["name"], into) for into in own)
    return found


def _about_transfer(job: Mapping[str, Any], _groups: Groups) -> list[str]:
    own = {"src": "/", "dest": "/", "link_dest": ["/"], "trust": job.get("trust") or NONE}
    return find_transfer_problems(passed_on(job, SET_BY_ROLE), **own, verify=job.get("verify"))


# With the options whose mistakes leave nothing to look at; where a mistake is told, there is no second word about it.
_LOOKS: Mapping[Callable[[Mapping[str, Any], Groups], list[str]], tuple[str, ...]] = {
    _about_hosts: ("name", "host", "hosts"),
    _about_repository: ("repository",),
    _about_copies: ("copies",),
    _about_paths: ("src",),
    _about_keep: ("keep",),
    _about_figures: (),
    _about_hooks: (),
    _about_consistent: ("consistent", "consistent_timeout", "src"),
    _about_drill: ("drill", "consistent", "src"),
    _about_transfer: (),
}


def _refused(look: Any, *arguments: Any) -> list[str]:
    try:
        look(*arguments)
    except Refused as refused:
        return [str(refused)]
    return []
