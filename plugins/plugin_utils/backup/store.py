# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The records, claims and reports of backups on the control node, in the folder that ``backup_report_dir`` names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from ..endpoint import Refusal
from ..fleet.folder import Folder
from .record import Record


class Store:
    """The folder. Without ``writes`` (check mode) nothing is written to it."""

    def __init__(self, folder: str, writes: bool) -> None:
        self._folder = Folder(folder, writes)
        self.writes = writes

    def claim_path(self, run_id: str) -> str:
        """Return the path of the file that says who makes a backup."""
        return self._folder.path_of(f"state/{run_id}.json")

    def path_of_report(self) -> str:
        """Return the path of the report for people."""
        return self._folder.path_of("report.md")

    def read(self, run_id: str) -> Record | None:
        """Return the last record of a run, None if there is none. Raises Refusal if it cannot be read."""
        name = _job(run_id)
        try:
            found = self._folder.read(name, "record of a backup")
        except (OSError, ValueError) as error:
            raise Refusal(
                f"{self._folder.path_of(name)} cannot be read: {error}. Restore it, or remove it: then the report does "
                "not know the backups before this one"
            ) from None
        return cast(Record, found) if found else None

    def read_all(self, run_ids: Iterable[str]) -> list[Record]:
        """Return the last records of runs, as far as there are any. Raises Refusal."""
        return [record for record in map(self.read, run_ids) if record is not None]

    def save(self, record: Record) -> None:
        """Write what became of a run. Raises OSError."""
        self._folder.save(_job(record["id"]), cast(Mapping[str, Any], record))

    def report(self, report: Mapping[str, Any], text: str) -> None:
        """Write the report on all backups, for programs and for people. Raises OSError."""
        self._folder.save("report.json", report)
        self._folder.write("report.md", text)


def _job(run_id: str) -> str:
    return f"jobs/{run_id}.json"
