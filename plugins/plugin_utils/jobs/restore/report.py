# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a restore, and its lines for the terminal. Pure.

Its file also records an incomplete restore, so that a rerun resumes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text

from ...common.units import format_bytes, format_size
from ..snapshot_answers import ShownProblem

_LONGEST = 500  # characters of a failure in the statistics of Ansible
_STATES = {"begun": "Begun", "failed": "Failed", "unloaded": "Restored, dumps not loaded", "restored": "Restored"}
_MOST_PROBLEMS = 20  # on the terminal
CHECKS = {
    "contents": "by content",
    "files": "by names, sizes and attributes",
    "structure": "the manifest is whole",
    "": "it has none that can be used",
}

# "from" is a keyword of Python
Identity = TypedDict(
    "Identity",
    {"repository": str, "from": str, "job": str, "snapshot": str, "path": str, "to": str, "dest": str},
)


# Counts of a transfer's result, with what was done to the entries.
DONE = {
    "files_created": "created",
    "files_updated": "replaced",
    "attributes_changed": "with attributes set",
    "files_deleted": "deleted",
    "files_unchanged": "as they were",
}


@dataclass
class RestoreFigures:
    """The members of a transfer's result that a report has. A restore that failed has only the ``failure``.

    One that restored all files, and could not load all dumps, has both.
    """

    method: str = ""
    encrypted: bool | None = None
    trust: str = ""
    bytes_apparent: int = 0
    bytes_total: int = 0
    bytes_content: int = 0
    bytes_sent: int = 0
    files_total: int = 0
    files_created: int = 0
    files_updated: int = 0
    files_deleted: int = 0
    files_unchanged: int = 0
    attributes_changed: int = 0
    resumed: bool = False
    verified: str | None = None
    preserved: list[str] = field(default_factory=list)
    duration: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)  # seconds
    throughput: float | None = None
    failure: str = ""


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
    state: str = "begun"  # begun, failed, unloaded or restored
    at: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)  # of the transfer, or the failure
    warnings: Sequence[str] = ()
    began: str = ""
    by: str = ""
    loaded: Mapping[str, str] = field(default_factory=dict)  # the databases of each kind, with their new names

    @property
    def name(self) -> str:
        """The name of the files, the same for each run of the same restore."""
        identity = self.identity
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        return f"{identity['from']}-{identity['job']}-{identity['snapshot']}-{digest[:8]}"

    def dump(self) -> Mapping[str, object]:
        """Return the report as JSON holds it."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the lines for the terminal. What they say of hosts and files is made harmless by who shows them."""
        identity, result, problems = self.identity, self.result, self.problems
        begun = "Would be restored" if self.state == "restored" and self.check_mode else _STATES[self.state]
        source = f"{identity['path'] or 'all'} of {identity['snapshot']} ({self.why})"
        dest = f"{identity['to']}:{identity['dest']}{', over what was there' if self.over else ''}"
        lines = [f"Restore of {identity['from']}, {identity['job']}", f"{begun} ({self.at}): {source} to {dest}"]
        if "failure" in result:
            lines.append(str(result["failure"]))
        if self.state in ("restored", "unloaded"):
            lines.append(_figures(result, self.check_mode))
            if not self.check_mode:
                verified = "by content and attributes" if result["verified"] == "checksum" else "by size and attributes"
                lines.append(
                    f"Compared with the snapshot {verified}: the same. Before that the snapshot was compared with its "
                    f"manifest: {CHECKS[self.checked]}."
                )
        if problems:
            shown = problems[:_MOST_PROBLEMS]
            more = f", the first {len(shown)} of them" if self.problems_total > len(shown) else ""
            lines += [f"Damaged in the snapshot ({self.problems_total}{more}):", *map(_problem, shown)]
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)]).splitlines()

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


def keep_result(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the members of a transfer's result that the report has."""
    return {name: result[name] for name in (one.name for one in fields(RestoreFigures)) if name in result}


def _figures(result: Mapping[str, Any], predicted: bool) -> str:
    size = format_size(result["bytes_total"], result.get("bytes_apparent", 0))
    done = ", ".join(f"{result[name]} {word}" for name, word in DONE.items())
    sent = format_bytes(result["bytes_sent"])
    sent += " would be sent" if predicted else f" sent in {round(result['duration'], 1)} s"
    method = f"method {result['method']}{'' if result['encrypted'] else ', not encrypted'}"
    return f"{entries_text(result['files_total'])}, {size}: {done}; {sent} ({method})."


def _problem(one: ShownProblem) -> str:
    path = "the snapshot itself" if one["path"] is None else one["path"]
    intact = f"; intact in {', '.join(one['intact_in'])}" if one["intact_in"] else ""
    return f"- {path}: {one['detail']}{intact}"
