# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who works on a job: one run at a time from a control node.

A file for each job says which process works on it. A second run is refused while the first one lives; where that was
killed, the second one learns its token, and can continue its jobs that still run on the hosts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import uuid
from typing import Iterator, NamedTuple, TextIO

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import as_object, member


class AlreadyClaimed(Exception):
    """Another run has it; the text is for the user."""


class Process(NamedTuple):
    """A process, named so that another one with its number is not taken for it."""

    node: str
    pid: int
    started: str  # in clock ticks since boot; empty if the system does not say


class ClaimHolder(NamedTuple):
    """Who has it, as the file says."""

    run: str = ""  # the token of the last run
    process: Process | None = None  # None if that was given back

    def dump(self) -> dict[str, str | dict[str, str | int] | None]:
        """Return what the file holds."""
        return {"run": self.run, "process": self.process._asdict() if self.process else None}


class Claim(NamedTuple):
    """The token of a new run, and that of an earlier run on this node that never released it, or an empty string."""

    run: str
    ended_run: str


def parse_holder(value: object) -> ClaimHolder:
    """Read what ``ClaimHolder.dump`` returns; raise WrongShape for anything else."""
    values = as_object(value, "the file")
    run = member(values, "run", str)
    if values.get("process") is None:
        return ClaimHolder(run)
    process = as_object(values["process"], "process")
    return ClaimHolder(
        run, Process(member(process, "node", str), member(process, "pid", int), member(process, "started", str))
    )


def claim(path: str, mine: Process, doing: str, *, write: bool = True) -> Claim:
    """Claim the right to a run. Raise AlreadyClaimed if another run lives, OSError where nothing can be written.

    ``doing`` is what that one does, for the message.
    """
    run = str(uuid.uuid4())
    if not write:
        holder = _read_only(path)
        _refuse_if_held(holder, mine, doing)
        return Claim(run, _ended(holder))
    with _locked(path) as file:
        holder = _parse(file.read())
        _refuse_if_held(holder, mine, doing)
        _write(file, ClaimHolder(run, mine))
    return Claim(run, _ended(holder))


def release(path: str, mine: Process) -> None:
    """Release the claim. The token stays: jobs of the run may still be running on the hosts."""
    with _locked(path) as file:
        holder = _parse(file.read())
        if holder.process == mine:
            _write(file, ClaimHolder(holder.run))


def process_of(pid: int) -> Process:
    """Return the name of a process of this node."""
    return Process(platform.node(), pid, _started(pid))


def _refuse_if_held(holder: ClaimHolder, mine: Process, doing: str) -> None:
    process = holder.process
    if not process or process == mine or process.node != mine.node:
        return  # of a process on another node nothing is known; what the host itself keeps is for that
    if _lives(process):
        raise AlreadyClaimed(
            f"another run (process {process.pid}) is {doing} at this moment. Two would undo each other's "
            "work; nothing was changed. Wait for it to end, or end that process, and run this again"
        )


def _ended(holder: ClaimHolder) -> str:
    """Return the token of a run that is known to have ended."""
    is_here = holder.process is None or holder.process.node == platform.node()
    return holder.run if is_here else ""


def _lives(process: Process) -> bool:
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process.started in ("", _started(process.pid))


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; empty if the system does not tell."""
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


def _write(file: TextIO, holder: ClaimHolder) -> None:
    file.seek(0)
    file.truncate()
    json.dump(holder.dump(), file)


def _read_only(path: str) -> ClaimHolder:
    try:
        with open(path, encoding="utf-8") as file:
            return _parse(file.read())
    except FileNotFoundError:
        return ClaimHolder()


def _parse(text: str) -> ClaimHolder:
    try:
        return parse_holder(json.loads(text))
    except ValueError:  # new, or of a node that crashed while it wrote
        return ClaimHolder()
