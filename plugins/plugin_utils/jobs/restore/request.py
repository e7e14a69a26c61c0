# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request for a restore: the user's options, completed from the jobs of the backup and checked. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import unescape

from ...common.argument_spec import spec_of_role
from ...common.paths import goes_back, within
from ...common.refusal import Refusal
from ...hosts.trust import NONE
from ..backup.jobs import OF_ONE_JOB, SET_BY_ROLE, clients
from ..backup.jobs import sources as backup_sources
from ..job_options import find_transfer_problems, spec_of_transfer, spec_with_jobs
from ..mistakes import check_by_spec, check_jobs, find_misspelt, tell_unknown_host
from ..notify import find_notify_problems
from .load import find_load_problems

_GUIDE = "ansible-doc -t role longhaul.fleet.restore"
_READ = ("host", "src", "repository")  # of a job of the backup, besides its name
# Options of longhaul.fleet.transfer that restore_transfer does not have, and why; it has all others.
NOT_TO_CHOOSE = {
    name: f"is an option that a restore sets itself{why}"
    for why, names in {
        ": set restore_path": ("src",),
        ": set restore_repository": ("src_host",),
        ": set restore_to": ("dest_host",),
        ": set restore_dest": ("dest",),
        ": set restore_delete": ("delete",),
        ": set restore_over": ("checksum",),
        ": set restore_verify": ("verify",),
        "": ("wait", "collect", "link_dest", "link_dest_exclude"),
    }.items()
    for name in names
}


@dataclass(frozen=True)
class RestoreOptions:
    """Variables of the role as the user gives them; empty strings for those that are not given."""

    client: str  # the host that was backed up, restore_from
    job: str
    path: str  # in the tree, or on the host
    when: str
    timezone: str
    repository: Mapping[str, str]  # host and path
    to: str
    dest: str
    over: bool
    delete: bool
    check: str  # the level to which the snapshot is compared with its manifest
    damaged: bool  # restore damaged files
    verify: str
    transfer: Mapping[str, Any]
    consistent: Sequence[Mapping[str, Any]] = ()  # dumps that are loaded into databases

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> RestoreOptions:
        """Return those among the options of a task."""
        named = {**options, "client": options["from"], "consistent": options.get("consistent") or ()}
        return cls(**{field.name: named[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class RestoreRequest:
    """The files to restore, and the hosts."""

    repository_host: str
    repository: str  # its path
    client: str
    job: str
    path: str  # in the tree
    to: str  # the host that receives the files
    origin: str  # their path on the client; empty: unknown

    @property
    def name(self) -> str:
        """The name of the job in messages and progress, as that of its backup."""
        return f"{self.client}/{self.job}"


def refuse_variables_of_restore(
    options: Mapping[str, Any], groups: Mapping[str, Sequence[str]], variables: Mapping[str, Any]
) -> str:
    """Return all that is wrong with the variables of the role as the user wrote them, and what to do; empty: nothing.

    ``options`` are those of the action, as Ansible has templated them, and ``variables`` are all that there are.
    Mistakes in the jobs of the backup are told only where nothing can be restored: a restore may be urgent.
    """
    spec = spec_of_role("restore")
    given = {f"restore_{name}": value for name, value in options.items() if f"restore_{name}" in spec}
    checked = check_by_spec(given, spec, _GUIDE)
    problems = [*find_misspelt(variables, spec, given), *checked.problems]
    problems += find_notify_problems(checked.values.get("restore_notify") or (), "restore_notify")
    jobs = options.get("jobs") or []
    if isinstance(jobs, str) or not isinstance(jobs, Sequence):
        problems.append("backup_jobs is no list of jobs")
        jobs = []
    spec_of_job = spec_with_jobs("backup", SET_BY_ROLE, OF_ONE_JOB)["backup_jobs"]["options"]
    written: list[Mapping[str, Any]] = []
    of_jobs: list[str] = []
    for job in check_jobs(jobs, spec_of_job, ("name", *_READ), _GUIDE):
        written.append(job.checked.values)
        if job.checked.wrong & {"name", "hosts", *_READ}:
            of_jobs += [f"backup_jobs: {problem}" for problem in job.tell(job.checked.problems)]
    values = {name[len("restore_") :]: checked.values.get(name, spec[name].get("default")) for name in given}
    defaults = options.get("defaults")
    jobs = [{**(defaults if isinstance(defaults, Mapping) else {}), **job} for job in written]
    asked = RestoreOptions.parse(values)
    try:
        complete_request(asked, jobs, groups, problems)
        return ""
    except Refusal as refusal:
        said = str(refusal)
    return said + "".join(f"\n- {problem}" for problem in of_jobs)


def complete_request(
    given: RestoreOptions,
    jobs: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Sequence[str]],
    found: Iterable[str] = (),
) -> RestoreRequest:
    """Return the request, completed from the jobs of the backup.

    Raises Refusal with a sentence for each problem, those that were ``found`` before included.
    """
    problems = list(found)
    client, name, fitting = _job(given, jobs, groups, problems)
    repository: Any = given.repository or next((job["repository"] for job in fitting if job.get("repository")), {})
    if not isinstance(repository, Mapping) or not repository.get("host") or not repository.get("path"):
        problems.append(
            "it is not known where the snapshots are: set restore_repository to {host: NAME, path: FOLDER}, or give "
            "the file with backup_jobs (-e @FILE)"
        )
        repository = {"host": "", "path": ""}
    sources = {one["part"]: os.path.normpath(one["src"]) for one in backup_sources(fitting[0])} if fitting else {}
    path, origin = _path(given.path, sources, problems)
    to = given.to or client
    for what, wanted in (("the repository's host", repository["host"]), ("restore_to", to)):
        if wanted and wanted not in groups["all"]:
            problems.append(f"{what} {tell_unknown_host(wanted, groups['all'])}")
    dest = given.dest
    if dest and not dest.startswith("/"):
        problems.append(f"restore_dest {dest} is not an absolute path")
    if goes_back(dest):
        problems.append(f"restore_dest {dest} has '..' in it, and could be anywhere: name the folder itself")
    problems += _about_transfer(given.transfer)
    problems += find_load_problems(given.consistent)
    if given.delete and not given.over:
        problems.append("restore_delete removes what is not in the snapshot, which takes restore_over=true, too")
    if client and not dest and not origin and not problems:
        problems.append(
            "it is not known where this was on the host, so nothing can be put beside it: name a folder in "
            "restore_dest, or give the file with backup_jobs (-e @FILE)"
            if not sources
            else f"the job has several trees: name one in restore_path ({', '.join(sources)}), or a folder in "
            "restore_dest"
        )
    if problems:
        lines = "".join(f"\n- {problem}" for problem in problems)
        raise Refusal(f"Nothing was restored, because the request is not valid:{lines}")
    return RestoreRequest(repository["host"], repository["path"], client, name, path, to, origin)


def _job(
    given: RestoreOptions,
    jobs: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Sequence[str]],
    problems: list[str],
) -> tuple[str, str, list[Mapping[str, Any]]]:
    """Return the host, the name of the job, and the jobs that fit both."""
    host, name = given.client, given.job
    fitting = [job for job in jobs if not name or job.get("name") == name]
    fitting = [job for job in fitting if not host or host in clients(job, groups)]
    if not host:
        hosts = sorted({one for job in fitting for one in clients(job, groups)})
        host = hosts[0] if len(hosts) == 1 else ""
        if not host:
            problems.append(_which("restore_from", "host was backed up", hosts))
    if host and not name:
        found = sorted({str(job["name"]) for job in fitting if job.get("name")})
        name = found[0] if len(found) == 1 else ""
        if not name:
            problems.append(_which("restore_job", f"job of {host} is meant", found))
    if jobs and not fitting and not given.repository:
        known = sorted({f"{job.get('name')} of {one}" for job in jobs for one in clients(job, groups)})
        problems.append(
            f"backup_jobs has no job {name or '(any)'} of {host or '(any host)'}; it has {', '.join(known)}"
        )
    return host, name, fitting


def _about_transfer(transfer: Mapping[str, Any]) -> list[str]:
    spec = spec_of_transfer(NOT_TO_CHOOSE)
    checked = check_by_spec(transfer, spec, "ansible-doc longhaul.fleet.transfer", nested=True)
    own = {"src": "/", "dest": "/", "trust": checked.values.get("trust") or NONE}
    return [
        *(f"restore_transfer.{problem}" for problem in checked.problems),
        *(f"restore_transfer: {problem}" for problem in find_transfer_problems(checked.values, **own)),
    ]


def _which(variable: str, what: str, found: Sequence[str]) -> str:
    return f"say which {what} with {variable}" + (f": {', '.join(found)}" if found else "")


def _path(path: str, sources: Mapping[str, str], problems: list[str]) -> tuple[str, str]:
    """Return the path in the tree, and its path on the host. It may be written as results of a search show it."""
    path = os.fsdecode(unescape(path))
    absolute, names = path.startswith("/"), [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names:
        problems.append(f"restore_path {path} has '..' in it: write the path without")
        return "", ""
    inside = "/".join(names)
    if not absolute or not names:
        top = "" if "" in sources else (names or [""])[0]
        if top not in sources:
            return inside, ""
        below = inside[len(top) :].strip("/")
        return inside, os.path.join(sources[top], below) if below else sources[top]
    for top, folder in sources.items():
        if within("/" + inside, folder):
            below = ("/" + inside)[len(folder) :].strip("/")
            return "/".join(part for part in (top, below) if part), "/" + inside
    backed_up = f"only {', '.join(sources.values())} was backed up" if sources else "it is not known what was backed up"
    problems.append(
        f"restore_path {path} is the path on the host, and {backed_up}. Write the path inside the tree, without the "
        "slash at its beginning"
    )
    return "", ""
