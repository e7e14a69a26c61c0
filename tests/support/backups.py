# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of the testbed's alpha, and of others that are alpha under another name, into a repository on beta."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..testbed import Testbed
from . import compare, refusal
from .playbooks import Playbooks, Run, Running

REPOSITORY = "/data/backup"


class Backups:
    """Runs of the playbook with one list of jobs. The control node's folder for reports is beside the inventory."""

    def __init__(self, bed: Testbed, playbooks: Playbooks, clients: tuple[str, ...] = ("alpha",)) -> None:
        self.bed, self.playbooks = bed, playbooks
        playbooks.inventory = bed.inventory(
            playbooks.folder / "backups.yml",
            extra={"ansible_pipelining": True, "ansible_ssh_args": "-o ControlPersist=20s"},
        )
        more = {name: ("alpha", {}) for name in clients if name != "alpha"}
        refusal.add_hosts(playbooks.inventory, more)
        self.folder = playbooks.inventory.parent / "longhaul-backup"
        self.repository = bed.root("beta") / REPOSITORY.lstrip("/")
        self.repository.mkdir(mode=0o700)
        self.jobs = [self.job("data")]

    @staticmethod
    def job(name: str, host: str = "alpha", **options: Any) -> dict[str, Any]:
        """Return a job, with encryption left out since it costs time."""
        return {
            "name": name,
            "host": host,
            "src": "/data/src",
            "repository": {"host": "beta", "path": REPOSITORY},
            "keep": {"last": 5},
            "encryption": "none",
            **options,
        }

    def start(self, *flags: str, **variables: Any) -> Running:
        """Start the playbook."""
        return self.playbooks.start("longhaul.fleet.backup", *flags, **{"backup_jobs": self.jobs, **variables})

    def run(self, *flags: str, **variables: Any) -> Run:
        """Run it to a good end."""
        run = self.start(*flags, **variables).wait().expect_success()
        assert "Traceback" not in run.output and "undefined" not in run.output, run.output
        return run

    def run_into_failure(self, *flags: str, **variables: Any) -> str:
        """Run it, which must fail in the end; give what it says there."""
        run = self.start(*flags, **variables).wait()
        assert run.rc != 0 and run.failures, run.output
        assert "Traceback" not in run.output and "undefined" not in run.output, run.output
        return run.failures[-1]

    def record(self, name: str = "data", host: str = "alpha") -> dict[str, Any]:
        """Return the control node's record of a job."""
        return json.loads((self.folder / "jobs" / host / f"{name}.json").read_text())

    def health(self) -> dict[str, dict[str, Any]]:
        """Return the report's entries by id."""
        return {one["id"]: one for one in json.loads((self.folder / "report.json").read_text())["jobs"]}

    def names(self, name: str = "data", host: str = "alpha") -> list[str]:
        """Return the contents of a job's folder, without its lock and its history."""
        return sorted(set(os.listdir(self.repository / host / name)) - {".lock", ".checks.json", "history.jsonl"})

    def snapshots(self, name: str = "data", host: str = "alpha") -> list[Path]:
        """Return the trees of the complete snapshots, the oldest first."""
        return [self.repository / host / name / one / "data" for one in self.names(name, host) if one.startswith("2")]


def same(one: Path, other: Path) -> list[str]:
    """Return what differs between two trees."""
    return compare.differences(one, other)
