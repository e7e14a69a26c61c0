# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of backups on the control node, in the folder that ``backup_report_dir`` names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...common.files import Folder
from ...common.refusal import Refusal
from ...report.archive import write_report
from ...report.model import EarlierReport, Page
from .state import BackupRecord, BackupState, parse_record, parse_state

_OVERALL = "report"  # the name of the report on all backups
AUDIT = "audit"  # of that for an auditor


class BackupStore:
    """The folder. Without ``writes`` (check mode) nothing is written to it."""

    def __init__(self, folder: str, writes: bool) -> None:
        self._folder = Folder(folder, writes)
        self.writes = writes

    def claim_path(self, run_id: str) -> str:
        """Return the path of the file that says who makes a backup."""
        return self._folder.path_of(f"state/{run_id}.json")

    def path_of_report(self, name: str = _OVERALL) -> str:
        """Return the path of a report for people."""
        return self._folder.path_of(f"{name}.html")

    def read(self, run_id: str) -> BackupRecord | None:
        """Return the last record of a backup, None if there is none. Raises Refusal if it cannot be read."""
        name = _job(run_id)
        try:
            found = self._folder.read(name, "record of a backup")
            return parse_record(found) if found else None
        except (OSError, ValueError) as error:
            raise Refusal(
                f"{self._folder.path_of(name)} cannot be read: {error}. Restore it, or remove it: then the report does "
                "not know the backups before this one"
            ) from None

    def read_all(self, run_ids: Iterable[str]) -> list[BackupRecord]:
        """Return the last records of backups, as far as there are any. Raises Refusal."""
        return [record for record in map(self.read, run_ids) if record is not None]

    def save(self, record: BackupRecord) -> None:
        """Write the record of a backup. Raises OSError."""
        self._folder.save(_job(record.id), record.dump())

    def read_state(self, run_id: str) -> BackupState | None:
        """Return how far a backup is, None if there is nothing that can be read."""
        try:
            found = self._folder.read(_state(run_id), "state of a backup")
            return parse_state(found) if found else None
        except (OSError, ValueError):
            return None

    def has_begun(self, run_id: str, run: str) -> bool:
        """Return whether an earlier call of this run began a backup. A killed run may have left a state of it, too."""
        state = self.read_state(run_id)
        return state is not None and state.run_id == run

    def save_state(self, run_id: str, state: BackupState) -> None:
        """Write how far a backup is, for a later call of the action. Raises OSError."""
        self._folder.save(_state(run_id), state.dump())

    def remove_state(self, run_id: str) -> None:
        """Remove what was written, if anything was. Raises OSError."""
        self._folder.remove(_state(run_id))

    def save_busy(self, run_id: str, run: str, reason: str) -> None:
        """Write why a run did not make a backup at which another run is at work. Raises OSError."""
        self._folder.save(_busy(run_id), {"run_id": run, "reason": reason})

    def read_busy(self, run_ids: Iterable[str], run: str) -> dict[str, str]:
        """Return why this run did not make backups, by their names."""
        found: dict[str, str] = {}
        for run_id in run_ids:
            with contextlib.suppress(OSError, ValueError):
                values = self._folder.read(_busy(run_id), "note of a backup")
                if values.get("run_id") == run:
                    found[run_id] = str(values.get("reason") or "")
        return found

    def report(
        self,
        report: Mapping[str, Any],
        make: Callable[[Sequence[EarlierReport]], Page],
        name: str = _OVERALL,
    ) -> list[str]:
        """Write a report, for programs and for people, and keep the one before; return why that could not be done."""
        return write_report(self._folder, name, report, make)


def _job(run_id: str) -> str:
    return f"jobs/{run_id}.json"


def _busy(run_id: str) -> str:
    return f"busy/{run_id}.json"


def _state(run_id: str) -> str:
    return f"running/{run_id}.json"
