# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restore drills: their options, when one is due, its record, and how long a restore of everything would take. Pure."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, as_object, member
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import DIRECTORY
from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import rule_of_path
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names, policy, subset
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.drill import MOST_FILES, NEWEST
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.manifest import ManifestReader

from ...common.argument_spec import spec_of_role
from ...common.units import format_bytes, seconds_of, short_time
from ..mistakes import convert, explain_kinds
from ..snapshot_answers import ShownProblem, parse_problems
from .consistent import DumpsInTree

EVERY, SHARE = "7d", "1/200"
# Of a server with loaded dumps, in its scratch folder: for PostgreSQL the folder of the socket, as its programs take
# it. See _consistent/scratch_server.py.
SOCKETS: Mapping[str, str] = {"postgresql": "server", "mariadb": "server/socket"}
_SLACK = 3600  # seconds that a drill may be early: runs of a schedule do not begin at the same second
_SHOWN = 5  # problems in a message
_LARGEST = 1 << 63
_MOST_ENTRIES = 50 * MOST_FILES  # files and the directories above them


class DumpsToLoad(NamedTuple):
    """Dumps of one kind that a drill loads into a server of its own."""

    kind: str
    folder: str  # in the snapshot's tree
    databases: Sequence[str]  # empty: all
    user: str  # as which the server runs; empty: nobody


class DrillSettings(NamedTuple):
    """The drills of a job for one host."""

    every: int  # seconds
    share: tuple[int, int]  # how many of how many parts of the files
    which: str  # snapshot: newest or random
    host: str  # of the inventory, which receives the files
    path: str  # the folder there in which scratch folders are made
    validate: Mapping[str, Any]  # a hook as the user wrote it; empty: none
    load: Sequence[DumpsToLoad] = ()


def read_drill(
    written: Mapping[str, Any] | None, client: str, repository: str, dumps: Mapping[str, Sequence[DumpsInTree]]
) -> DrillSettings | None:
    """Return the drills that a user asked for, None if there are none. Raises Refused.

    ``client`` and ``repository`` are the hosts of the backup, and ``dumps`` its folders of dumps, by kind.
    """
    if not written:
        return None
    into = written.get("into")
    if not isinstance(into, Mapping) or not into.get("host") or not into.get("path"):
        raise Refused("drill has no into: {host: HOST, path: /ABSOLUTE/PATH} says where a drill restores to")
    path = str(into["path"])
    if not path.startswith("/") or ".." in path.split("/"):
        raise Refused(f"the path {path} of into of drill is not absolute, or has '..' in it: name the folder itself")
    every = policy.span(str(written.get("every") or EVERY), "every of drill")
    if not every:
        raise Refused("every of drill is 0: give a span of time such as 7d")
    try:
        share = subset.parse(str(written.get("share") or SHARE))
    except Refused:
        raise Refused(f"the share '{written.get('share')}' of drill cannot be read: write 1/200 or 1/1") from None
    sides = {"client": client, "repository": repository}
    host = str(into["host"])
    option = spec_of_role("backup")["backup_jobs"]["options"]["drill"]["options"]["load"]
    load = [_read_load(one, dumps) for one in convert(written.get("load") or (), option)]
    if len({one.kind for one in load}) < len(load):
        raise Refused("load of drill names one kind twice: give one entry of each kind")
    return DrillSettings(
        every,
        share,
        str(written.get("snapshot") or NEWEST),
        sides.get(host, host),
        os.path.normpath(path),
        dict(written.get("validate") or {}),
        load,
    )


def _read_load(written: Mapping[str, Any], dumps: Mapping[str, Sequence[DumpsInTree]]) -> DumpsToLoad:
    """Return an entry of ``load``. Raises Refused."""
    if mistake := explain_kinds(written, tuple(SOCKETS), "load of drill"):
        raise Refused(mistake)
    ((kind, options),) = written.items()
    folders = dumps.get(kind, ())
    if len(folders) != 1:
        has = f"has {len(folders)} entries {kind}, and a drill loads those of one" if folders else f"has no {kind}"
        raise Refused(f"load of drill names {kind}, and consistent of the job {has}")
    (made,) = folders
    named = options.get("databases") or ()
    if missing := [name for name in named if made.databases and name not in made.databases]:
        raise Refused(f"load of drill names the database {missing[0]} of {kind}, of which consistent makes no dump")
    return DumpsToLoad(kind, made.folder, named, str(options.get("user") or ""))


def fill_in(hook: Mapping[str, Any], folder: str, sockets: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a hook in whose command, or arguments of a module, names in braces are replaced.

    ``{folder}`` is the path of the restored tree, and ``{postgresql}`` and ``{mariadb}`` those of the servers' sockets.
    """
    words = {f"{{{kind}}}": path for kind, path in sockets.items()}
    words["{folder}"] = folder

    def fill(value: object) -> object:
        if isinstance(value, Mapping):
            return {name: fill(one) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [fill(one) for one in value]
        return _replace_words(value, words) if isinstance(value, str) else value

    filled: dict[str, Any] = {}
    if hook.get("command"):
        filled["command"] = [fill(word) for word in hook["command"]]
    if hook.get("args"):
        filled["args"] = {name: fill(value) for name, value in hook["args"].items()}
    return {**hook, **filled}


def _replace_words(text: str, words: Mapping[str, str]) -> str:
    """Return a text in which each of these words is another one; what was put in is not looked at again. Pure."""
    return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text)


@dataclass
class DrillRecord:
    """The last drill of a backup, and what is known of the last one that succeeded."""

    at: str  # when its run began, ISO 8601, UTC
    host: str  # that received the files
    path: str  # of the scratch folder, which is gone unless it is ``kept``
    seed: str = ""
    snapshot: str = ""
    files: int = 0  # that were restored
    bytes: int = 0
    files_total: int = 0  # in the snapshot
    bytes_total: int = 0
    is_cut: bool = False  # for lack of room, or since there are too many files
    seconds: float = 0  # of the transfer
    restored: bool = False  # all is there, and as the manifest says
    has_servers: bool = False  # it starts some for dumps
    databases: int = 0  # that were loaded from dumps
    load_seconds: float = 0
    validated: bool = False  # by the user's own check
    failure: str = ""  # why it failed; empty if it did not
    kept: bool = False  # the scratch folder is still there
    succeeded: str = ""  # when the run of the last drill began that succeeded; empty: none did
    bytes_per_second: float | None = None  # of that one
    files_per_second: float | None = None

    @property
    def has_succeeded(self) -> bool:
        """Whether this drill was a success."""
        return self.succeeded == self.at and not self.failure

    def begin_after(self, before: DrillRecord | None) -> None:
        """Take what the drill before has found out."""
        if before is not None:
            self.succeeded = before.succeeded
            self.bytes_per_second, self.files_per_second = before.bytes_per_second, before.files_per_second

    def succeed(self) -> None:
        """Note that it succeeded, and the rates."""
        self.succeeded, self.kept = self.at, False
        if self.seconds > 0:
            self.bytes_per_second = round(self.bytes / self.seconds, 1) if self.bytes else None
            self.files_per_second = round(self.files / self.seconds, 3)


def is_due(settings: DrillSettings | None, last: DrillRecord | None, now: float, forced: bool = False) -> bool:
    """Return whether a drill is due ``now``, in seconds since 1970. After one that failed, it is at once."""
    if settings is None:
        return False
    if forced or last is None or last.failure:
        return True
    age = now - (seconds_of(last.at) or 0)
    return not 0 <= age < settings.every - min(_SLACK, settings.every // 10)


def seconds_for_all(drill: DrillRecord) -> float | None:
    """Return how long a restore of the whole snapshot would take at the rates of the last drill that succeeded.

    The slower of both counts: many small files take their time whatever their size. None: not known.
    """
    times = [
        total / rate
        for total, rate in (
            (drill.bytes_total, drill.bytes_per_second),
            (drill.files_total, drill.files_per_second),
        )
        if rate
    ]
    return max(times) if times and drill.files_total else None


def tell_drill(drill: DrillRecord) -> str:
    """Return the sentence about a drill."""
    where = f"{drill.host}:{drill.path}"
    if drill.failure:
        return f"drill failed: {drill.failure}"
    took = f"{counted(drill.files, 'file', 'files')}, {format_bytes(drill.bytes)}, of {drill.snapshot}"
    loaded = f", {counted(drill.databases, 'database', 'databases')} loaded in {drill.load_seconds:.1f} s"
    proven = "as the manifest says" + (loaded if drill.databases else "") + (", validated" if drill.validated else "")
    seconds = seconds_for_all(drill)
    everything = f"; {tell_all(drill, seconds)}" if seconds is not None else ""
    return f"drill: restored {took} to {where} in {drill.seconds:.1f} s, {proven}{everything}"


def tell_all(drill: DrillRecord, seconds: float) -> str:
    """Return how long a restore of the whole job would take."""
    size = f"{counted(drill.files_total, 'file', 'files')}, {format_bytes(drill.bytes_total)}"
    return f"restoring the whole job ({size}) would take about {short_time(max(1.0, seconds))} at this rate"


# Answers of hosts. Untrusted input.


class Scratch(NamedTuple):
    """The room of a new scratch folder."""

    room: int
    entries: int
    removed: int  # leftovers of earlier drills


class Chosen(NamedTuple):
    """The share of a snapshot to restore."""

    snapshot: str
    manifest: str  # of the share, base64
    rules: list[str]  # for the transfer
    files: int
    bytes: int
    files_total: int
    bytes_total: int
    is_cut: bool


def parse_scratch(answer: object) -> Scratch:
    """Return the answer of the host that receives the files. Raises WrongShape."""
    said = as_object(answer, "its answer")
    removed = said.get("removed")
    if not isinstance(removed, list):
        raise WrongShape("removed is no list")
    return Scratch(_count(said, "room"), _count(said, "entries"), len(removed))


def parse_choice(answer: object) -> Chosen:
    """Return the choice of the repository host. Raises WrongShape."""
    said = as_object(answer, "its answer")
    name, packed = member(said, "snapshot", str), member(said, "manifest", str)
    if names.kind_of(name) != names.COMPLETE:
        raise WrongShape(f"the snapshot is {name!r}")
    rules: list[str] = []
    try:
        for record in ManifestReader(io.BytesIO(base64.b64decode(packed, validate=True))).records():
            if len(rules) > _MOST_ENTRIES:
                raise WrongShape("the manifest has too many entries")
            if record.entry.path:
                rules.append(rule_of_path(record.entry.path.decode(), record.entry.type == DIRECTORY))
    except WrongShape:
        raise
    except ValueError as error:  # also of what is no base64, or no UTF-8
        raise WrongShape(f"the manifest cannot be read: {error}") from None
    return Chosen(
        name,
        packed,
        [*rules, "- *"],
        files=_count(said, "files"),
        bytes=_count(said, "bytes"),
        files_total=_count(said, "files_total"),
        bytes_total=_count(said, "bytes_total"),
        is_cut=member(said, "is_cut", bool),
    )


def find_damage(answer: object) -> str:
    """Return what differs from the manifest, by the answer of a host; empty if nothing does. Raises WrongShape."""
    said = as_object(answer, "its answer")
    problems, total = parse_problems(said.get("problems")), _count(said, "problems_total")
    if not total and not problems:
        return ""
    told = "; ".join(f"{_path(one)}: {one['detail']}" for one in problems[:_SHOWN])
    more = f"; and {total - _SHOWN} more" if total > _SHOWN else ""
    return f"what was restored is not what the manifest says ({counted(total, 'problem', 'problems')}): {told}{more}"


def _path(problem: ShownProblem) -> str:
    return problem["path"] or "the tree itself"


def _count(values: Mapping[str, Any], name: str) -> int:
    count = member(values, name, int)
    if not 0 <= count < _LARGEST:
        raise WrongShape(f"{name} is {count}")
    return count
