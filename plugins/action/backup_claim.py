# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.backup_claim: one run of a backup at a time from a control node."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import uuid
from typing import Any, Iterator, TextIO

from ansible_collections.longhaul.fleet.plugins.modules.backup_claim import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import ControlNodeAction


class ActionModule(ControlNodeAction):
    """Take and give back the right to a run."""

    documentation = DOCUMENTATION

    def act(self, options: dict[str, Any], *, write: bool) -> dict[str, Any]:
        """Give a token for the run, and that of a run before it that was ended before its time."""
        mine = process_of(os.getppid())  # this is a worker; its parent is ansible-playbook, which lives for the run
        try:
            if options["state"] == "claimed":
                return claim(options["path"], mine, write=write)
            if write:
                release(options["path"], mine)
        except Held as held:
            return {"failed": True, "msg": str(held)}
        return {}

    def place(self, options: dict[str, Any]) -> tuple[str, str]:
        """Give the file that says who has it."""
        return options["path"], "backup_report_dir"


class Held(Exception):
    """Another run has it; the text is for the user."""


def claim(path: str, mine: dict[str, Any], *, write: bool = True) -> dict[str, str]:
    """Give ``run``, a new token, and ``ended_run``, that of a run on this node that has ended without giving it back.

    Raises Held where that run lives, OSError where nothing can be written.
    """
    run = str(uuid.uuid4())
    if not write:
        holder = _read_only(path)
        _refuse_if_held(holder, mine)
        return {"run": run, "ended_run": _ended(holder)}
    with _locked(path) as file:
        holder = _parse(file.read())
        _refuse_if_held(holder, mine)
        _write(file, {"run": run, "process": mine})
    return {"run": run, "ended_run": _ended(holder)}


def release(path: str, mine: dict[str, Any]) -> None:
    """Give it back. The token stays: what the run had begun on the hosts may still be at work."""
    with _locked(path) as file:
        holder = _parse(file.read())
        if holder.get("process") == mine:
            _write(file, {**holder, "process": None})


def process_of(pid: int) -> dict[str, Any]:
    """Name a process so that another one with its number is not taken for it."""
    return {"node": platform.node(), "pid": pid, "started": _started(pid)}


def _refuse_if_held(holder: dict[str, Any], mine: dict[str, Any]) -> None:
    process = holder.get("process")
    if not process or process == mine or process["node"] != mine["node"]:
        return  # of a process on another node nothing is known; the repository itself keeps two apart
    if _lives(process):
        raise Held(
            f"another run (process {process['pid']}) is making this backup at this moment. Two would undo each other's "
            "work; nothing was changed. Wait for it to end, or end that process, and run this again"
        )


def _ended(holder: dict[str, Any]) -> str:
    """Give the token of a run of which this node knows that it has ended."""
    process = holder.get("process")
    is_here = process is None or process["node"] == platform.node()
    return str(holder.get("run", "")) if is_here else ""


def _lives(process: dict[str, Any]) -> bool:
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process["started"] in ("", _started(process["pid"]))


def _started(pid: int) -> str:
    """Give when a process started, in clock ticks since boot; empty where the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]  # one that has ended, and only waits to be collected


@contextlib.contextmanager
def _locked(path: str) -> Iterator[TextIO]:
    os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o640), "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # held for a moment only
        yield file


def _write(file: TextIO, data: dict[str, Any]) -> None:
    file.seek(0)
    file.truncate()
    json.dump(data, file)


def _read_only(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            return _parse(file.read())
    except FileNotFoundError:
        return {}


def _parse(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:  # of a node that crashed while it wrote
        return {}
    return found if isinstance(found, dict) else {}
