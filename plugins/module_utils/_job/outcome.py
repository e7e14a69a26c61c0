# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a transfer did, in counts and in words. Private to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

MAX_ERRORS = 200  # listed; all are counted


@dataclass
class Outcome:
    """What one run of a method accounts for. "Files" are entries of every type, as rsync counts them.

    Bytes are those of file contents: ``bytes_total`` all that the tree holds (within the filters),
    ``bytes_sent`` what travelled (before compression), ``bytes_matched`` what the destination had already.
    """

    bytes_total: int = 0
    bytes_sent: int = 0
    bytes_matched: int = 0
    files_total: int = 0
    files_created: int = 0
    files_updated: int = 0
    files_deleted: int = 0
    attributes_changed: int = 0
    vanished: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)  # {"path": ..., "reason": ...}
    errors_total: int = 0
    warnings: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)  # itemized as rsync's %i, a space, the escaped path
    changes_total: int = 0
    deferred: list[str] = field(default_factory=list)  # escaped paths that were left to a run of rsync
    resumed: bool = False
    phases: dict[str, float] = field(default_factory=dict)  # seconds
    spent: dict[str, Any] = field(default_factory=dict)  # "source", "dest": see ledger.account
    cmd: dict[str, list[str]] = field(default_factory=dict)  # "source", "dest": the argv that ran there
    stderr: str = ""  # the last lines of what the programs said
    failure: str = ""  # why it failed as a whole, and what to do; empty where it did not

    def change(self, line: str, limit: int) -> None:
        """Count a change, and list it while there are no more than ``limit``."""
        self.changes_total += 1
        if len(self.changes) < limit:
            self.changes.append(line)

    def error(self, path: str, reason: str) -> None:
        """Count what went wrong with one path."""
        self.errors_total += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append({"path": path, "reason": reason})

    @property
    def files_unchanged(self) -> int:
        """Entries that were right already."""
        return max(0, self.files_total - self.files_created - self.files_updated - self.attributes_changed)

    @property
    def changed(self) -> bool:
        """Whether anything at the destination differs from before."""
        return bool(self.files_created or self.files_updated or self.files_deleted or self.attributes_changed)

    def as_dict(self) -> dict[str, Any]:
        """Give plain data for JSON, with the two derived values."""
        return dict(asdict(self), files_unchanged=self.files_unchanged, changed=self.changed)
