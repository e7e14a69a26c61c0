# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a run is, as it tells programs: JSON lines, and a small file for the callback longhaul.fleet.progress.

The file is replaced at each look. The run is a task, in a process of its own; the callback is in that of
ansible-playbook. They share Ansible's folder for temporary files. The callback makes a folder there, and a run that
finds it leaves the showing to it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ansible import constants

from ..common.host_text import one_line
from ..common.units import Amounts, choose_amounts, now_text, percent, seconds_left

_NAME = "longhaul-progress"


@dataclass(frozen=True)
class PairProgress:
    """How far the transfer of a job is."""

    name: str
    phase: str
    bytes_done: int
    bytes_total: int  # 0: not known
    files_done: int
    rate: float | None  # bytes a second, or entries: see amounts
    paused: bool
    at: float  # when this was true, by the monotonic clock of the machine
    files_total: int = 0  # 0: not known
    activity: str = ""  # in words: pass 2 of at most 5
    current: str = ""  # the path at work

    @property
    def amounts(self) -> Amounts:
        """How much is done, in bytes or in entries; ``rate`` is of the same."""
        return choose_amounts(self.bytes_done, self.bytes_total, self.files_done, self.files_total)

    @property
    def left(self) -> float | None:
        """The seconds until it ends at this rate; None if that is not known."""
        return None if self.paused else seconds_left(self.amounts.done, self.amounts.total, self.rate)


@dataclass(frozen=True)
class ProgressSnapshot:
    """How far a run is."""

    total: int  # jobs
    ended: int
    failed: int  # of those that have ended
    pairs: Sequence[PairProgress]  # whose transfers run

    def plus(self, other: ProgressSnapshot) -> ProgressSnapshot:
        """Return two runs as one."""
        return ProgressSnapshot(
            self.total + other.total,
            self.ended + other.ended,
            self.failed + other.failed,
            [*self.pairs, *other.pairs],
        )


def progress_folder() -> str:
    """Return the folder of all workers of this ansible-playbook."""
    return os.path.join(constants.DEFAULT_LOCAL_TMP, _NAME)


class ProgressWriter:
    """The file of one run, which is written only if somebody shows it."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or progress_folder()
        self._path = os.path.join(self._folder, f"{os.getpid()}.json")

    @property
    def is_watched(self) -> bool:
        """Whether somebody shows what is published."""
        return os.path.isdir(self._folder)

    def publish(self, snapshot: ProgressSnapshot) -> None:
        """Replace the file."""
        data = {**vars(snapshot), "pairs": [vars(one) for one in snapshot.pairs]}
        partial = f"{self._path}.part"
        with contextlib.suppress(OSError):
            with open(partial, "w", encoding="ascii") as stream:
                json.dump(data, stream)
            os.replace(partial, self._path)

    def close(self) -> None:
        """Remove it."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)


class ProgressLog:
    """A file that the user named, to which a run appends a line of JSON for each look at a job, and for its end.

    What cannot be written is told once, and the run goes on without the file.
    """

    def __init__(self, path: str, tell: Callable[[str], None], *, write: bool) -> None:
        """Take the path, empty for none, and what shows a line. Without ``write`` (check mode) there is no file."""
        self._path, self._tell = path if write else "", tell

    @property
    def is_wanted(self) -> bool:
        """Whether lines are written."""
        return bool(self._path)

    def progress(self, pair: PairProgress) -> None:
        """Append how far a job is."""
        left = pair.left
        self._append(
            {
                "event": "progress",
                "job": pair.name,
                "phase": pair.phase,
                "activity": pair.activity,
                "bytes_done": pair.bytes_done,
                "bytes_total": pair.bytes_total,
                "files_done": pair.files_done,
                "files_total": pair.files_total,
                "percent": percent(pair.amounts.done, pair.amounts.total),
                "rate": None if pair.rate is None else round(pair.rate, 1),
                "rate_of": "bytes" if pair.amounts.is_bytes else "entries",
                "seconds_left": None if left is None else round(left, 1),
                "current": one_line(pair.current),
                "paused": pair.paused,
            }
        )

    def ended(self, name: str, failed: bool) -> None:
        """Append that a job has ended."""
        self._append({"event": "ended", "job": name, "failed": failed})

    def _append(self, values: Mapping[str, object]) -> None:
        if not self._path:
            return
        line = json.dumps({"at": now_text(), **values})
        try:
            with open(self._path, "a", encoding="ascii") as stream:
                stream.write(f"{line}\n")
        except OSError as error:
            self._tell(
                f"The progress file {self._path} cannot be written: {error.strerror}. The run goes on without it"
            )
            self._path = ""


def read_snapshots(folder: str) -> ProgressSnapshot | None:
    """Return what all runs that are under way say together; None if there is none."""
    found: ProgressSnapshot | None = None
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return None
    for name in names:
        with contextlib.suppress(OSError, ValueError, TypeError):
            with open(os.path.join(folder, name), encoding="ascii") as stream:
                data = json.load(stream)
            one = ProgressSnapshot(**{**data, "pairs": [PairProgress(**pair) for pair in data["pairs"]]})
            found = found.plus(one) if found else one
    return found
