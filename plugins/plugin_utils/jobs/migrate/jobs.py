# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of migration jobs: which of them run, what is wrong with them, and jobs turned round.

A job that was switched over can be turned round: what the new host has goes to a folder beside the old host's tree.
That tree stays as it was at the switch, so going back is starting the old host again. What was written on the new host
since then is in the folder beside it, for a person to take from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.user_options import check_user_options

from ...common.argument_spec import Spec
from ...common.paths import inside
from ...transfer.roots import child_name
from ..hooks import find_file_problems, find_hook_problem
from ..job_options import find_transfer_problems, spec_with_jobs
from ..mistakes import (
    check_by_spec,
    check_jobs,
    find_misspelt,
    list_problems,
    refuse_variables,
    suggest_host,
    tell_unknown_host,
)
from ..notify import find_notify_problems
from ..selection import at_most, explain_missing, read_names
from .groups import Group, find_groups, find_left_out
from .phases import Phase
from .state import BACK, BEFORE, FAILED, HOOKS, MigrationState
from .store import OVERALL_REPORT

Job = Mapping[str, Any]
REQUIRED = ("name", "src_host", "src", "dest_host", "dest")
_ROLE, _GUIDE = "migrate", "ansible-doc -t role longhaul.fleet.migrate"
SET_BY_ROLE = dict.fromkeys(
    ("wait", "collect"), "is an option that a migration sets itself: it waits for each transfer"
)
OF_ONE_JOB = (*REQUIRED, "priority", "link")  # options that cannot be set for all jobs
_VARIABLES = {"folder": "report_dir"}  # of the role, for options of the action that have another name
_NO_JOBS = """\
There are no jobs: migrate_jobs is not set. Write a file jobs.yml, for example

migrate_jobs:
  - name: data
    src_host: old.example.com
    src: /srv/data/
    dest_host: new.example.com
    dest: /srv/data

and run: ansible-playbook longhaul.fleet.PLAYBOOK -i INVENTORY -e @jobs.yml"""
_ONLY_BACKUPS = """\
There are no jobs: migrate_jobs is not set, and longhaul.fleet.PLAYBOOK compares the trees of these. To verify the
snapshots of backup_jobs, run on the host of the repository, for each job:

ansible REPOSITORY_HOST -i INVENTORY -m longhaul.fleet.snapshot -a 'action=check repository=PATH host=HOST job=JOB'"""
_ANY_ROOTS = {"src": "/", "dest": "/"}  # in place of those of a job, which are checked by themselves
HOSTS = ("src_host", "dest_host")
_SIDES = ("source", "dest", "localhost")  # what a hook may have as host besides those of the inventory
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


class Selection(NamedTuple):
    """The jobs of a run: each with the options for all jobs, those that run, and their groups."""

    jobs: list[Job]
    groups: dict[str, Group]
    problems: list[str]  # with jobs that were to be turned round

    def driven_by(self, hosts: Iterable[str], play_hosts: Iterable[str]) -> list[Job]:
        """Return the jobs that a task for some hosts drives: those of their destinations, and whole groups.

        A group is driven by the first of its hosts that is in the play.
        """
        own, known = set(hosts), list(play_hosts)
        drivers = {
            name: next((host for host in group.hosts if host in known), group.hosts[0])
            for group in self.groups.values()
            for name in group.jobs
        }
        return [job for job in self.jobs if drivers.get(job["name"], job["dest_host"]) in own]


def select_jobs(options: Mapping[str, Any], states: Iterable[MigrationState] | None = None) -> Selection:
    """Return the jobs of a run by the options of the action; for ``states`` see find_back."""
    only, back, defaults = read_names(options["only"]), read_names(options["back"]), options["defaults"]
    problems: list[str] = []
    jobs = options["jobs"]
    if back:
        jobs, problems = find_back(jobs, back, defaults, states)
        only = []
    groups = find_groups(jobs, defaults, only)
    return Selection([{**defaults, **job} for job in jobs if not only or job["name"] in only], groups, problems)


def refuse_jobs(
    options: Mapping[str, Any],
    hosts: Iterable[str],
    automated: bool,
    variables: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Return all that is wrong with the variables of the role as the user wrote them, and what to do; empty: nothing.

    ``options`` are those of the action, as Ansible has templated them. ``hosts`` are those of the inventory, for
    ``automated`` see find_problems, and ``variables`` are all that there are.
    """
    spec, jobs = spec_with_jobs(_ROLE, SET_BY_ROLE, OF_ONE_JOB), options["jobs"]
    given = {f"{_ROLE}_{_VARIABLES.get(name, name)}": value for name, value in options.items()}
    given = {name: value for name, value in given.items() if name in spec}
    problems = find_misspelt(variables, spec, given)
    listed = isinstance(jobs, Sequence) and not isinstance(jobs, str)
    if not jobs and options.get("playbook") and not problems:
        playbook = str(options["playbook"])
        has_backups = playbook == "verify" and bool(variables.get("backup_jobs"))
        return (_ONLY_BACKUPS if has_backups else _NO_JOBS).replace("PLAYBOOK", playbook)
    if listed or not jobs:
        given.pop("migrate_jobs")  # checked below, each with its name
    if not variables.get("migrate_limits") and "migrate_limits" in given:
        spec, given["fleet_limits"] = {**spec, "fleet_limits": spec["migrate_limits"]}, given.pop("migrate_limits")
    checked = check_by_spec(given, spec, _GUIDE)
    problems += checked.problems
    values: dict[str, Any] = {name: checked.values.get(name, option.get("default")) for name, option in spec.items()}
    phase, back = Phase(values["migrate_phase"]), read_names(values["migrate_back"])
    if back and phase not in (Phase.PREFLIGHT, Phase.SEED, Phase.SYNC):
        problems.append(
            "migrate_back copies what the new host has, and switches nothing over: leave out "
            f"migrate_phase={phase.value}, or set it to preflight, seed or sync"
        )
    known = frozenset(hosts)
    problems += _problems_of_hooks({kind: values[f"migrate_{kind}"] for kind in HOOKS}, known, "migrate_")
    problems += find_notify_problems(values["migrate_notify"] or (), "migrate_notify")
    selected: ReverseJobs | None = None
    if listed and back:
        checks = list(check_jobs(jobs, spec["migrate_jobs"]["options"], REQUIRED, _GUIDE))
        problems += at_most([problem for one in checks for problem in one.tell(one.checked.problems)])
        if not problems:
            selected = find_back([one.checked.values for one in checks], back, values["migrate_defaults"])
    if listed and (selected or not back):
        problems += find_problems(
            selected.jobs if selected else jobs,
            known,
            values["migrate_defaults"],
            only=[] if back else read_names(values["migrate_only"]),
            agreed=read_agreed(values["migrate_allow_delete"]),
            rehearses=phase is Phase.REHEARSE,
            stops=bool(values["migrate_before_cutover"]),
            revives=bool(values["migrate_cutover_failed"]),
            automated=automated,
            spec=None if selected else spec["migrate_jobs"]["options"],
        )
    if selected and (problems or not selected.jobs):  # else the run names them, with what the states of its jobs say
        problems = selected.problems + problems
    return refuse_variables(_ROLE, problems)


def refuse_selection(selection: Selection, options: Mapping[str, Any], load: Callable[[str], object]) -> str:
    """Return why a run does not begin with its jobs; empty if it does.

    By their states, the hosts of the play and the files of tasks that are hooks, which ``load`` reads.
    """
    problems = selection.problems + _problems_of_files(selection, options, load)
    if Phase(options["phase"]) in (Phase.REHEARSE, Phase.CUTOVER):
        problems += find_left_out(selection.groups, options["play_hosts"], read_names(options["only"]))
    return list_problems("Nothing was done", problems)


def read_agreed(given: object) -> list[str]:
    """Return the jobs whose first copy may delete, as the user named them; ``true`` stands for all."""
    names = ["true" if name == "True" else name for name in read_names(given)]
    return [name for name in names if name not in ("False", "false")]


def _hooks_of(lists: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what to call each hook of a job, or of those for all jobs, whose lists have a ``prefix``; and the hook."""
    for kind in HOOKS:
        for hook in lists.get(kind) or ():
            yield f"hook {hook.get('name') or 'without a name'} of {prefix}{kind}", hook


def _problems_of_hooks(lists: Mapping[str, Any], hosts: AbstractSet[str], prefix: str = "") -> list[str]:
    problems = []
    for called, hook in _hooks_of(lists, prefix):
        problem = find_hook_problem(hook)
        problems += [f"{called} {problem}"] if problem else []
        host = str(hook.get("host") or "source")
        if host not in hosts and host not in _SIDES:
            likely = suggest_host(host, [*_SIDES, *hosts]) or ". Name one of its hosts, source or dest"
            problems.append(f"{called} runs on {host}, which is not in the inventory{likely}")
    return problems


def _problems_of_files(selection: Selection, options: Mapping[str, Any], load: Callable[[str], object]) -> list[str]:
    """Return what is wrong with the files of tasks; ``load`` reads YAML."""
    found = [*_hooks_of(options, "migrate_")]
    found += [(f"job {job['name']}: {called}", hook) for job in selection.jobs for called, hook in _hooks_of(job)]
    return find_file_problems(found, options["hook_folder"], load)


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
    spec: Spec | None = None,
) -> list[str]:
    """Return a sentence for each problem: what is missing, unknown, there twice, or would destroy another's work.

    ``defaults`` count for all jobs. ``only`` and ``agreed`` name jobs: those that run, and those that may delete.
    A run that ``rehearses`` must bring back what it stops; ``stops`` and ``revives`` say whether hooks for all jobs do.
    ``automated`` says whether AWX, an automation controller or ansible-runner started it. ``spec`` is that of a job,
    None if it was checked before.
    """
    known, others, only = frozenset(hosts), _Others(), list(only)
    problems, names, named = [], set(), set()
    for one in check_jobs(jobs, spec, REQUIRED, _GUIDE):
        job = {**defaults, **one.checked.values}
        found = one.checked.problems + _problems_of_one(job, known, one.checked.wrong) or others.conflicts(job)
        is_told = one.checked.wrong & {BEFORE, FAILED}
        if rehearses and not is_told and (not only or str(job.get("name")) in only):
            found = found + _problems_of_rehearsal(job, stops, revives)
        problems += one.tell(found)
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


def _problems_of_one(job: Mapping[str, Any], hosts: AbstractSet[str], wrong: AbstractSet[str]) -> list[str]:
    """Return what is wrong with a job besides what was told of the ``wrong`` options, which it does not have."""
    problems = [f"{key} is missing" for key in REQUIRED if not job.get(key) and key not in wrong]
    if job.get("name") and not NAME.match(str(job["name"])):
        problems.append("its name may have letters, digits, dots, dashes and underscores; files are named after it")
    if job.get("name") == OVERALL_REPORT:
        problems.append(f"its name is that of the report on all jobs, {OVERALL_REPORT}.html; give it another name")
    if job.get("cutover_group") and not NAME.match(str(job["cutover_group"])):
        problems.append("cutover_group may have letters, digits, dots, dashes and underscores")
    for key in HOSTS:
        if job.get(key) and job[key] not in hosts:
            problems.append(f"{key} {tell_unknown_host(str(job[key]), hosts)}")
    for key in ("src", "dest"):
        if job.get(key) and not str(job[key]).startswith("/"):
            problems.append(f"{key} {job[key]} is not an absolute path")
    problems += _problems_of_rsync_opts(job.get("rsync_opts") or [])
    problems += find_transfer_problems({**job, **_ANY_ROOTS, "rsync_opts": None})
    problems += _problems_of_hooks(job, hosts)
    if problems or wrong & {*REQUIRED} or job["src_host"] != job["dest_host"]:
        return problems
    origin, target = os.path.normpath(str(job["src"])), arrival(job)
    if origin == target:
        problems.append(f"source and destination are the same directory, {origin}")
    elif inside(target, origin):
        problems.append(f"the destination {target} lies inside the source {origin}, so the copy would contain itself")
    return problems


def _problems_of_rsync_opts(options: Sequence[str] | str) -> list[str]:
    problems = []
    for option in map(str, options.split(",") if isinstance(options, str) else options):
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


class ReverseJobs(NamedTuple):
    """The jobs that go back, and why others do not."""

    jobs: list[Job]
    problems: list[str]


def find_back(
    jobs: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    defaults: Mapping[str, Any] = MappingProxyType({}),
    states: Iterable[MigrationState] | None = None,
) -> ReverseJobs:
    """Return the jobs of these names, turned round, and a sentence for each that cannot be.

    ``defaults`` count for all jobs; ``states`` are what is kept of jobs, as far as they have begun, None if nobody has
    looked.
    """
    known = {state.name: state for state in states or ()}
    named = {str(job.get("name")): {**defaults, **job} for job in jobs if job.get("name") in names}
    turned, problems = [], []
    for name in dict.fromkeys(names):
        if name not in named:
            problems.append(f"migrate_back names {name}, and there is no such job")
            continue
        job, state = named[name], known.get(name)
        found = _problems_of_way_back(job)
        if states is not None and (state is None or not state.is_switched):
            found.append(f"it was not switched over, so {job['src_host']} has all that there is")
        problems += [f"job {name}: {problem}" for problem in found]
        turned += [] if found else [turn_round(job)]
    return ReverseJobs(turned, problems)


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


def _problems_of_way_back(job: Job) -> list[str]:
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
