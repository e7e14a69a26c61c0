# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dumps of databases that are loaded after they were restored: what restore_consistent means, and the job on a host."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.argument_spec import spec_of_role
from ...common.host_text import one_line
from ...common.paths import goes_back
from ...hosts.host_runner import HostFailed, HostRunner
from ...transfer import steps
from ...transfer.status import parse_status
from ...transfer.watching import watch
from ..mistakes import convert, explain_kinds

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import JobKey, Start

KINDS = ("postgresql", "mariadb")
SUFFIX = "_restored"  # of the new database of each dump
_USERS = {"postgresql": "postgres", "mariadb": "root"}
_SHORT = 5.0  # seconds in which small dumps are loaded, so that no poll is needed
_LONGEST = 2000  # characters that are told of why a host failed
_MOST_NAMED = 20  # databases
_LONGEST_NAME = 80  # characters of a database's name in a message
_PATIENCE = 300.0  # seconds for which the host may be out of reach


def find_load_problems(written: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each mistake in the variable restore_consistent. Pure."""
    found = []
    for one in _convert_all(written):
        mistake = explain_kinds(one, KINDS, "restore_consistent")
        if mistake:
            found.append(mistake)
            continue
        ((kind, options),) = one.items()
        if goes_back(str(options.get("folder") or "")):
            found.append(f"folder of {kind} in restore_consistent has '..' in it: write the path without")
        if options.get("suffix") == "" and not options.get("databases") and not options.get("over"):
            found.append(
                f"suffix of {kind} in restore_consistent is empty, so dumps would go over their own databases. If "
                "this is intended, set over: true"
            )
    return found


def _convert_all(written: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return entries with their types: a text such as "false" is no."""
    found: Sequence[Mapping[str, Any]] = convert(written, spec_of_role("restore")["restore_consistent"])
    return found


def make_load(one: Mapping[str, Any], restored: str) -> Mapping[str, object]:
    """Return an entry of restore_consistent as the host takes it. Pure. ``restored`` is the folder with the dumps."""
    (converted,) = _convert_all([one])
    ((kind, options),) = converted.items()
    suffix, owners = options.get("suffix"), options.get("owners")
    return {
        "kind": kind,
        "folder": os.path.normpath(os.path.join(restored, str(options.get("folder") or ""))),
        "databases": {str(name): str(new) for name, new in (options.get("databases") or {}).items()},
        "suffix": SUFFIX if suffix is None else suffix,
        "over": options.get("over") or False,
        "owners": True if owners is None else owners,
        "user": str(options.get("user") or _USERS[kind]),
        "socket": str(options.get("socket") or ""),
        "port": options.get("port") or 0,
        "defaults_file": str(options.get("defaults_file") or ""),
    }


class LoadOutcome(NamedTuple):
    """The dumps that a host has loaded."""

    databases: str  # each with its new name, the first ones; empty if there is none
    failure: str = ""  # why others were not loaded


def load_dumps(runner: HostRunner, load: Mapping[str, object], label: str, say: Callable[[str], None]) -> LoadOutcome:
    """Have a host load dumps into its databases, and wait for that. Raises HostFailed if the outcome is not known."""
    named = json.dumps([runner.name, load], sort_keys=True)
    folder: JobKey = {"id": hashlib.sha256(f"load {named}".encode()).hexdigest()[:16], "side": "dest"}
    start: Start = {
        "do": "start",
        "kind": "load",
        "request": {"side": "dest", "part": "consistent", "root": "", "peer_name": runner.name, "load": load},
        "until": [],
        "wait": _SHORT,
        "secrets": [],
        "replace": None,
        "id": folder["id"],
        "side": folder["side"],
    }
    status = parse_status(runner.run(start)[0])
    if status.alive:
        status = watch(runner, folder, label, say, _PATIENCE)
    runner.run(*steps.end(folder))
    databases = describe_loaded(status.loaded)
    if status.state == "finished":
        return LoadOutcome(databases)
    failure = status.failure[:_LONGEST] or f"the job that loads the dumps has the state {status.state}"
    return LoadOutcome(databases, str(HostFailed(failure, runner.name)))


def describe_loaded(value: object) -> str:
    """Return the databases of a host in words: shop as shop_old. Untrusted input. Pure."""
    pairs = value if isinstance(value, list) else []
    named = [
        " as ".join(one_line(name[:_LONGEST_NAME]) for name in pair)
        for pair in pairs[:_MOST_NAMED]
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
    ]
    more = [f"{len(pairs) - _MOST_NAMED} more"] if len(pairs) > _MOST_NAMED else []
    return ", ".join([*named, *more])
