# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consistent sources of a backup: what the option ``consistent`` means for a client, and its steps in the workflow.

A job on the client prepares the sources, holds them while the transfers read them, and undoes them. See
``_job/consistent_job.py`` there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ...common.argument_spec import spec_of_role
from ...common.host_text import one_line
from ...common.paths import goes_back, within
from ...common.units import format_bytes
from ...fleet.scheduler import Call, Pause
from ...hosts.host_runner import HostFailed, HostRunner
from ...transfer import steps
from ...transfer.status import Status, parse_status
from ..mistakes import convert, explain_kinds

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import JobKey, Start

KINDS = ("postgresql", "mariadb", "sqlite", "btrfs")
DUMPS = ".longhaul-dumps"  # the folder of dumps in the first path of a job, with one for each kind
UNDO_AFTER = 3600  # seconds without a reader
_BESIDE_SQLITE = ("", "-wal", "-shm", "-journal")  # endings of the live files, which are not transferred
_SHORT = 5.0  # seconds in which many sources are prepared, so that no poll is needed
_PATIENCE = 300.0  # seconds for which the host may be out of reach
_PAUSES = (1.0, 2.0, 5.0, 10.0)  # between polls; the last one counts for all that follow
_LONGEST = 2000  # characters that are told of what a client says
_WILD = "*?"
_REFUSED = "[]\\\n"  # characters that patterns of files and filter rules read differently


class Preparation(NamedTuple):
    """The consistent sources of a run, as its client is asked for them."""

    identity: str  # of the job that has them on the client
    sources: Sequence[Mapping[str, object]]
    undo_after: float  # seconds without a reader
    read: Mapping[str, str]  # by path of the run: what the transfer reads, the same or in a snapshot
    rules: Mapping[str, Sequence[str]]  # by path of the run: filter rules that come first

    def start(self, repository: str) -> Start:
        """Return the step that starts the job. ``repository`` is the host that the transfers go to."""
        request = {
            "side": "source",
            "part": "consistent",
            "root": "",
            "peer_name": repository,
            "sources": list(self.sources),
            "readers": [path.rstrip("/") for path in self.read.values()],
            "undo_after": self.undo_after,
        }
        return {
            "do": "start",
            "kind": "consistent",
            "request": request,
            "until": ["serving"],
            "wait": _SHORT,
            "secrets": [],
            "replace": None,
            "id": self.identity,
            "side": "source",
        }

    @property
    def folder(self) -> JobKey:
        """The folder of the job on the client."""
        return {"id": self.identity, "side": "source"}


def plan_preparation(job: Mapping[str, Any], paths: Sequence[str], identity: str) -> Preparation | None:
    """Return what is prepared before the transfers of a job, None if nothing is. Pure.

    The job has no problems, and ``paths`` are its own, each with a slash at its end. ``identity`` names the job on the
    client.
    """
    requests = [_request(kind, options, paths, identity) for one in _entries(job) for kind, options in one.items()]
    if not requests:
        return None
    return Preparation(
        identity,
        requests,
        float(job.get("consistent_timeout") or UNDO_AFTER),
        {path: _read_from(path, requests) for path in paths},
        {path: [rule for request in requests for rule in _rules_of(request, os.path.normpath(path))] for path in paths},
    )


def find_dump_folders(preparation: Preparation) -> list[str]:
    """Return the folders of dumps on the client. Pure."""
    return [str(source["into"]) for source in preparation.sources if source["kind"] != "btrfs"]


class DumpsInTree(NamedTuple):
    """A folder of dumps in a snapshot."""

    folder: str  # in its tree
    databases: Sequence[str]  # that are dumped; empty: all that there are


def dumps_in_tree(preparation: Preparation | None, parts: Mapping[str, str]) -> Mapping[str, list[DumpsInTree]]:
    """Return the folders of dumps in the tree of a snapshot, by kind. Pure.

    ``parts`` are the folders of that tree by the path of the client whose contents go there.
    """
    found: dict[str, list[DumpsInTree]] = {}
    for source in preparation.sources if preparation else ():
        if source["kind"] != "btrfs":
            root, into = str(source["root"]), str(source["into"])
            folder = os.path.normpath(os.path.join(parts[root], os.path.relpath(into, root)))
            named = source.get("databases")
            found.setdefault(str(source["kind"]), []).append(
                DumpsInTree(folder, named if isinstance(named, list) else ())
            )
    return found


def _entries(job: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the entries of ``consistent`` with their types: a text such as "no" is no, and one name is a list."""
    option = spec_of_role("backup")["backup_jobs"]["options"]["consistent"]
    found: Sequence[Mapping[str, Any]] = convert(job.get("consistent") or (), option)
    return found


def _read_from(path: str, requests: Sequence[Mapping[str, object]]) -> str:
    """Return the path that is read in the place of a path of the job: in the snapshot of the deepest subvolume."""
    snapshots = {str(request["subvolume"]): str(request["name"]) for request in requests if request["kind"] == "btrfs"}
    subvolume = max((one for one in snapshots if within(os.path.normpath(path), one)), key=len, default="")
    if not subvolume:
        return path
    snapshot = os.path.join(subvolume, snapshots[subvolume])
    return os.path.normpath(os.path.join(snapshot, os.path.relpath(path, subvolume))) + "/"


def _request(kind: str, options: Mapping[str, Any], paths: Sequence[str], identity: str) -> dict[str, object]:
    """Return one source as the client takes it."""
    if kind == "btrfs":
        return {
            "kind": kind,
            "subvolume": os.path.normpath(options["subvolume"]),
            "name": f".longhaul-{identity}",
            "leave_out_nested": options.get("leave_out_nested") or False,
        }
    root, into = _place(kind, options, [os.path.normpath(path) for path in paths])
    place = {"kind": kind, "root": root, "into": into, "keep": options.get("keep") or False}
    if kind == "sqlite":
        return {**place, "files": [os.path.relpath(path, root) for path in map(os.path.normpath, options["files"])]}
    named = options.get("databases") or []
    server = {
        **place,
        "databases": [] if named == ["all"] else named,
        "user": str(options.get("user") or ("postgres" if kind == "postgresql" else "root")),
        "socket": str(options.get("socket") or ""),
        "free_percent": options.get("free_percent", 100),
    }
    if kind == "mariadb":
        return {**server, "defaults_file": str(options.get("defaults_file") or "")}
    return {
        **server,
        "port": options.get("port", 0),
        "compress": options.get("compress", -1),
        "globals": options.get("globals", True),
    }


def _place(kind: str, options: Mapping[str, Any], paths: Sequence[str]) -> tuple[str, str]:
    """Return the path of the job in which a folder of dumps is, and the folder. SQLite's is beside its files' root."""
    root = paths[0]
    if kind == "sqlite":
        root = next(path for path in paths if within(os.path.normpath(options["files"][0]), path))
    into = os.path.normpath(os.path.join(root, str(options.get("into") or os.path.join(DUMPS, kind))))
    return (root if kind == "sqlite" else next((path for path in paths if within(into, path)), root)), into


def _rules_of(request: Mapping[str, object], src: str) -> list[str]:
    """Return the rules by which a transfer of ``src`` takes all dumps, and no live file of SQLite."""
    if request["kind"] == "btrfs" or request["root"] != src:
        return []
    rules = []
    below = os.path.relpath(str(request["into"]), src)
    if below != ".":
        parts = below.split("/")
        rules += [f"+ /{'/'.join(parts[:count])}/" for count in range(1, len(parts))]
        rules.append(f"+ /{below}/***")
    files = request.get("files")
    if isinstance(files, list):
        for name in (f"{file}{ending}" for file in files for ending in _BESIDE_SQLITE):
            # A folder that has a wildcard's name is no database.
            rules += [*([f"+ /{name}/"] if set(name) & set(_WILD) else []), f"- /{name}"]
    return rules


def find_consistent_problems(job: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
    """Return a sentence for each mistake in the option ``consistent`` of a job with these paths. Pure."""
    found: list[str] = []
    places: dict[str, str] = {}
    for one in _entries(job):
        mistake = explain_kinds(one, KINDS, "consistent")
        if mistake:
            found.append(mistake)
            continue
        ((kind, options),) = one.items()
        problems = _problems_of(kind, options, paths)
        found += [f"{kind} of consistent: {problem}" for problem in problems]
        if problems or kind == "btrfs" or not paths:
            continue
        into = _place(kind, options, paths)[1]
        if into in places:
            found.append(f"{kind} of consistent: {places[into]} has its dumps in {into}, too. Set into of one of them")
        places[into] = kind
    timeout = job.get("consistent_timeout")
    if timeout is not None and not 1 <= int(timeout) <= 7 * 86400:
        found.append(f"consistent_timeout is {timeout}: give seconds, from 1 to {7 * 86400}")
    return found


def _problems_of(kind: str, options: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
    if kind == "btrfs":
        subvolume = str(options.get("subvolume") or "")
        if not subvolume.startswith("/") or goes_back(subvolume):
            return [f"subvolume is {subvolume!r}, and an absolute path without '..' is needed"]
        if not any(within(path, os.path.normpath(subvolume)) for path in paths):
            return [f"no src of the job is in the subvolume {subvolume}, so nothing would be read from its snapshot"]
        return []
    found = []
    into = str(options.get("into") or "")
    if kind == "sqlite":
        found += _problems_of_files(options.get("files") or (), paths)
    if goes_back(into) or set(into) & set(_WILD + _REFUSED):
        found.append(f"into is {into!r}: name a folder, without '..' and without any of {_WILD}[]\\")
    elif not found and paths:
        root, place = _place(kind, options, paths)
        if not within(place, root):
            found.append(f"into {place} is not in a src of the job, so the dumps would not be in the backup")
    if not 0 <= options.get("free_percent", 100) <= 1000:
        found.append(f"free_percent is {options['free_percent']}: give per cent, from 0 to 1000")
    if not 0 <= options.get("compress", 0) <= 9:
        found.append(f"compress is {options['compress']}: give a level from 0 to 9")
    return found


def _problems_of_files(files: Sequence[str], paths: Sequence[str]) -> list[str]:
    if not files:
        return ["files is missing: name database files in src, such as /srv/app/*.sqlite"]
    roots = set()
    for file in files:
        if not file.startswith("/") or goes_back(file) or set(file) & set(_REFUSED) or "**" in file:
            return [f"{file!r} is no absolute path with no other wildcards than * and ? within a name"]
        roots |= {path for path in paths if within(os.path.normpath(file), path) and os.path.normpath(file) != path}
    if len(roots) != 1:
        return ["files are not in one src of the job. Give one entry of sqlite for the files of each src"]
    return []


# The steps on the client


def prepare(
    preparation: Preparation, runner: HostRunner, repository: str, tell: Callable[[str], None]
) -> Generator[Any, Any, str]:
    """Have the client prepare the sources; return why it failed, empty if they are ready. Raises HostFailed.

    What an earlier run has prepared stays while its transfer reads it, since this run attaches to that. Anything else
    that is left of it is undone first.
    """
    status = yield Call(lambda: _ask(runner, steps.poll(preparation.folder, 0.0))[0])
    if status.alive and status.state == "serving" and not status.idle:
        tell("the run before has prepared the sources, and its transfer reads them: they are used on")
        return ""
    status = yield from start_holder(runner, preparation.folder, preparation.start(repository))
    if status.alive:
        done = status.progress
        count = counted(done.files_done, "database or subvolume", "databases or subvolumes")
        tell(f"prepared consistent sources: {count}, {format_bytes(done.bytes_done)} of dumps")
        return ""
    return tell_failure(status.failure or f"the job that prepares the sources has {status.state}")


def start_holder(runner: HostRunner, folder: JobKey, start: Start) -> Generator[Any, Any, Status]:
    """Start a job that holds something until it is ended, after what an earlier one has left of it is undone.

    Return its status once it serves, or has ended. Raises HostFailed.
    """
    status: Status = yield Call(lambda: _ask(runner, *steps.end(folder), start)[-1])
    pauses = iter(_PAUSES)
    seen = time.monotonic()
    while status.alive and status.state != "serving":
        yield Pause(next(pauses, _PAUSES[-1]))
        try:
            status = yield Call(lambda: _ask(runner, steps.poll(folder, 0.0))[0])
        except HostFailed as error:
            if not error.unreachable or time.monotonic() - seen > _PATIENCE:
                raise
        else:
            seen = time.monotonic()
    return status


class HolderEnd(NamedTuple):
    """The end of what a job held."""

    was_held: bool  # up to this moment
    failure: str  # what could not be removed


def end_holder(runner: HostRunner, folder: JobKey) -> HolderEnd:
    """Have a host end a job that holds something, and undo that. Raises HostFailed."""
    return end_holders(runner, [folder])[0]


def end_holders(runner: HostRunner, folders: Sequence[JobKey]) -> list[HolderEnd]:
    """Have a host end several such jobs in one execution. Raises HostFailed."""
    asked = [[steps.poll(folder, 0.0), *steps.end(folder)] for folder in folders]
    said = iter(_ask(runner, *(step for one in asked for step in one)))
    return [_end_of(*[next(said) for _step in one][:2]) for one in asked]


def _end_of(before: Status, after: Status) -> HolderEnd:
    """Return what a poll before, and the stop, say of the end of a job. Pure."""
    is_new = before.alive or after.failure != before.failure  # an earlier one was told when it failed
    failure = tell_failure(after.failure) if is_new and after.state == "failed" else ""
    return HolderEnd(before.alive and before.state == "serving", failure)


def tell_failure(said: str) -> str:
    """Return what a host says as one line for people, of a bounded length."""
    return one_line(said)[:_LONGEST]


def _ask(runner: HostRunner, *asked: Any) -> list[Status]:
    """Return the statuses that steps answer, and a plain one for those that answer none. Raises HostFailed."""
    return [
        parse_status({"state": "none", "alive": False, **said}) if isinstance(said, Mapping) else parse_status(said)
        for said in runner.run(*asked)
    ]
