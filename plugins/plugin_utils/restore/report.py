# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a restore. Its file also records an incomplete restore, so that a rerun resumes it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypedDict

from ..fleet.render import render
from ..snapshot_answers import ShownProblem

_LONGEST = 500  # characters of a failure in the statistics of Ansible
_KEPT = (
    *("method", "encrypted", "trust", "bytes_apparent", "bytes_total", "bytes_content", "bytes_sent", "files_total"),
    *("files_created", "files_updated", "files_deleted", "files_unchanged", "attributes_changed", "resumed"),
    *("verified", "preserved", "duration", "phases", "throughput", "failure"),
)

# "from" is a keyword of Python
Identity = TypedDict(
    "Identity",
    {"repository": str, "from": str, "job": str, "snapshot": str, "path": str, "to": str, "dest": str},
)


@dataclass(frozen=True)
class RestoreReport:
    """The report for programs, as its file has it."""

    identity: Identity
    over: bool
    delete: bool
    why: str  # this snapshot
    snapshot_state: str
    checked: str
    problems: Sequence[ShownProblem]
    problems_total: int
    check_mode: bool
    state: str = "begun"  # begun, failed or restored
    at: str = ""
    result: Mapping[str, object] = field(default_factory=dict)  # of the transfer, or the failure
    warnings: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The name of the files, the same for each run of the same restore."""
        identity = self.identity
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        return f"{identity['from']}-{identity['job']}-{identity['snapshot']}-{digest[:8]}"

    def dump(self) -> Mapping[str, object]:
        """Return the report as JSON holds it."""
        return asdict(self)

    def text(self) -> str:
        """Return the report for people."""
        return render("restore", "restore.md.j2", __restore_report=self.dump())

    def summary(self, path: str) -> Mapping[str, object]:
        """Return the figures for the statistics of Ansible. ``path`` is that of the report for people."""
        counts = {"entries": "files_total", "bytes": "bytes_total"}
        counts.update({name: name for name in ("bytes_apparent", "bytes_sent")})
        return {
            **{name: self.result.get(member, 0) for name, member in counts.items()},
            "state": self.state,
            "check_mode": self.check_mode,
            "at": self.at,
            "identity": self.identity,
            "failure": str(self.result.get("failure", ""))[:_LONGEST],
            "report": "" if self.check_mode else path,
        }


def keep_result(result: Mapping[str, object]) -> Mapping[str, object]:
    """Return the members of a transfer's result that the report has."""
    return {name: result[name] for name in _KEPT if name in result}
