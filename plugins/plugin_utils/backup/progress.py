# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run knows of the backup at hand, also between the parts that hooks divide it into. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .record import Failure
from .stages import Stage


@dataclass
class Progress:
    """How far a backup is, and what happened so far."""

    at: str  # when it began, as ISO 8601 in UTC
    stage: Stage = Stage.BEGIN
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a person should know although it succeeded
    said: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by the module snapshot, by action
    transfers: list[Mapping[str, Any]] = field(default_factory=list)  # what the report keeps of them
    run: str = ""  # the token of this run; empty while it has not claimed the backup
    ended_run: str = ""  # that of an earlier run that never released its claim
    lost: bool = False  # a host was lost in the middle of a hook, which took this backup out of the play

    @property
    def snapshots(self) -> list[Mapping[str, Any]] | None:
        """The snapshots as the repository listed them; None if it was not asked."""
        listed = self.said.get("list")
        return None if listed is None else list(listed["snapshots"])

    def fail(self, step: str, reason: str) -> None:
        """Note what failed, and why."""
        self.failures.append({"step": step, "reason": reason})

    def dump(self) -> Mapping[str, Any]:
        """Return what the role's tasks keep until the next part.

        The answers of hosts are one text of JSON: paths in them are used again, and the result of a task is made
        harmless.
        """
        return {**asdict(self), "stage": self.stage.value, "said": json.dumps(self.said)}


def parse_progress(value: Mapping[str, Any]) -> Progress:
    """Read what ``Progress.dump`` returns."""
    return Progress(**{**value, "stage": Stage(value["stage"]), "said": json.loads(value["said"])})
