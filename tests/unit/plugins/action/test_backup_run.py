# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a run of backups whose report or metrics cannot be written or made."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.action import backup_run
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.state import (
    BackupState,
    StepFailure,
    make_record,
)

RUN: Any = {
    "id": "web1/data",
    "host": "web1",
    "name": "data",
    "repository": {"host": "vault", "path": "/srv/backup"},
    "stale_after": 86400,
    "copies": [],
}
TIME = "2026-11-21T10:59:58Z"


class ReportBench:
    """The part that reports, after a run whose only backup failed, and the messages that it sends."""

    def __init__(self, place: Path) -> None:
        self.folder, self.got = place / "reports", place / "message.json"
        self.folder.mkdir()

    def report(self, records: bool = True, **given: Any) -> dict[str, Any]:
        """Return the result of the action."""
        state = BackupState(TIME, failures=[StepFailure("transfer", "no line")])
        made = json.loads(json.dumps(make_record(RUN, state, TIME, None).dump()))
        action: Any = object.__new__(backup_run.ActionModule)
        action.variables, action._task = {"groups": {}}, SimpleNamespace(diff=False)
        command = ["/bin/sh", "-c", f"cat > '{self.got}'"]
        options = {
            "part": "report",
            "folder": str(self.folder),
            "run_id": "1",
            "jobs": [],
            "defaults": {},
            "drill": {},
            "drill_only": False,
            "records": [made] if records else [],
            "wanted": [RUN["id"]],
            "busy": {},
            "started_by": "ada@control1",
            "notify": [{"command": command, "when": ["success", "failure"]}],
            "textfile": "",
        }
        return action.conduct({**options, **given}, lambda _line: None, None, True)

    @property
    def message(self) -> dict[str, Any]:
        """The message about the end."""
        return json.loads(self.got.read_text())


@pytest.fixture(name="bench")
def _bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReportBench:
    monkeypatch.setattr(backup_run, "make_runs", lambda *_asked: [RUN])
    return ReportBench(tmp_path)


def check_told(bench: ReportBench, result: dict[str, Any]) -> None:
    """Check that the failure of the backup is in the result, with the figures, and was sent."""
    assert [one["name"] for one in result["failures"]] == [RUN["id"]] and "no line" in result["failures"][0]["reason"]
    assert result["summary"]["wanted"] == 1 and "failed" not in result
    assert (bench.message["event"], bench.message["failures"]) == ("failure", result["failures"])


def test_metrics_that_cannot_be_written_hide_no_failure(bench: ReportBench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = bench.report(textfile=str(tmp_path / "file/x.prom"))
    check_told(bench, result)
    (warning,) = result["warnings"]
    assert str(tmp_path / "file") in warning and "backup_textfile" in warning


@pytest.mark.parametrize("name", ["report.json", "report.html"])
def test_a_report_that_cannot_be_written_hides_no_failure(bench: ReportBench, name: str) -> None:
    (bench.folder / name / "x").mkdir(parents=True)
    result = bench.report()
    check_told(bench, result)
    (warning,) = result["warnings"]
    assert name in warning


def test_all_is_well_without_a_warning(bench: ReportBench, tmp_path: Path) -> None:
    result = bench.report(textfile=str(tmp_path / "x.prom"))
    check_told(bench, result)
    assert "warnings" not in result and (tmp_path / "x.prom").exists()


def test_the_end_is_told_though_a_record_cannot_be_read(bench: ReportBench) -> None:
    (bench.folder / "jobs/web1").mkdir(parents=True)
    (bench.folder / "jobs/web1/data.json").write_text("{")
    with pytest.raises(Refusal, match=r"data\.json cannot be read"):
        bench.report(records=False)
    assert bench.message["event"] == "failure" and "data.json" in bench.message["failures"][0]["reason"]
