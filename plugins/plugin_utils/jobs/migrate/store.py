# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states and reports of migration jobs on the control node, in the folder that ``migrate_report_dir`` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.files import Folder
from .state import MigrationState, parse_state


class MigrationStore:
    """The folder. Without ``writes`` (check mode) nothing is written to it."""

    def __init__(self, folder: str, writes: bool) -> None:
        self._folder = Folder(folder, writes)

    def state_path(self, job: str) -> str:
        """Return the path of a job's state."""
        return self._folder.path_of(_state(job))

    def read(self, job: str) -> MigrationState | None:
        """Return the state of a job, None if there is none. Raises OSError, and ValueError if it is no state."""
        found = self._folder.read(_state(job), "state of a job")
        return parse_state(found) if found else None

    def path_of_report(self) -> str:
        """Return the path of the report on all jobs, for people."""
        return self._folder.path_of("report.md")

    def read_report(self, job: str) -> Mapping[str, Any]:
        """Return the last report of a job, empty if there is none. Raises OSError, and ValueError if it is none."""
        return self._folder.read(f"{job}.json", "report of a job")

    def save(self, state: MigrationState) -> None:
        """Write the state of a job, whole and on the disk when this returns. Raises OSError."""
        self._folder.save(_state(state.name), state.dump())

    def report(self, job: str, report: Mapping[str, Any], text: str) -> None:
        """Write a job's report, for programs and for people. Raises OSError."""
        self._folder.save(f"{job}.json", report)
        self._folder.write(f"{job}.md", text)


def _state(job: str) -> str:
    return f"state/{job}.json"
