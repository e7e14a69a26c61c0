# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states and reports of migration jobs on the control node, in the folder that ``migrate_report_dir`` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...common.files import Folder
from ...report.archive import save_page, write_report
from ...report.model import EarlierReport, Page
from .state import MigrationState, parse_state

OVERALL_REPORT = "report"  # the name of the report on all jobs
COMPARISONS = "verify"  # the folder of reports on comparisons


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

    def path_of_report(self, folder: str = "") -> str:
        """Return the path of the report on all jobs, for people."""
        return self._folder.inner(folder).path_of(f"{OVERALL_REPORT}.html")

    def read_report(self, job: str) -> Mapping[str, Any]:
        """Return the last report of a job, empty if there is none. Raises OSError, and ValueError if it is none."""
        return self._folder.read(f"{job}.json", "report of a job")

    def save(self, state: MigrationState) -> None:
        """Write the state of a job, whole and on the disk when this returns. Raises OSError."""
        self._folder.save(_state(state.name), state.dump())

    def report(self, job: str, report: Mapping[str, Any], make: Callable[[], Page]) -> str:
        """Write a job's report, for programs and for people. Raises OSError if that for programs cannot be written.

        Return why that for people could not be written, empty if it was.
        """
        self._folder.save(f"{job}.json", report)
        return save_page(self._folder, job, lambda _earlier: make())

    def report_comparisons(
        self, compared: Mapping[str, Any], make: Callable[[Sequence[EarlierReport]], Page]
    ) -> list[str]:
        """Write the report on comparisons of all jobs to a folder of its own; return why that could not be done."""
        return write_report(self._folder.inner(COMPARISONS), OVERALL_REPORT, compared, make)

    def report_all(
        self, reports: Sequence[Mapping[str, Any]], make: Callable[[Sequence[EarlierReport]], Page]
    ) -> list[str]:
        """Write the report on all jobs, and keep the one before; return why that could not be done.

        That for programs has no samples and no passes of earlier runs: the report of each job has them.
        """
        left_out = ("samples", "history")
        jobs = [{name: value for name, value in one.items() if name not in left_out} for one in reports]
        return write_report(self._folder, OVERALL_REPORT, {"jobs": jobs}, make)


def _state(job: str) -> str:
    return f"state/{job}.json"
