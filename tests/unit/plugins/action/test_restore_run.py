# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The progress file of a restore; the restore itself has tests of its own."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.action import restore_run
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import ControllerGone
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.job_options import role_options
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore import workflow
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import RestoreRequest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status, parse_progress

AGE = 3600
NAME = names.name_of(int(time.time()) - AGE)
TIME = "2026-11-21T17:30:09Z"
ANSWERS: dict[str, Any] = {
    "snapshot": {"snapshots": [{"name": NAME, "state": "complete", "time": TIME, "age": AGE, "reason": ""}]},
    "probe": {},
    "inspect_snapshot": {"name": NAME, "kind": "directory", "checked": "contents", "problems": [], "problems_total": 0},
    "inspect_destination": {"overlaps": False, "dest": "/srv/data.back", "free": True},
}
COUNTS = ("files_created", "files_updated", "files_deleted", "files_unchanged", "attributes_changed", "vanished")
TOTALS = {"bytes_total": 5, "bytes_apparent": 5, "bytes_sent": 5, "files_total": 2}
RESULT = {"changed": True, "duration": 1.0, "method": "stream", "encrypted": True, "verified": "checksum"}
LISTS: dict[str, Any] = {"changes": [], "changes_total": 0, "deleted": [], "errors": [], "repaired": []}
RUNNING = Status("running", alive=True, progress=parse_progress({"bytes_done": 1, "bytes_total": 5}))


def restore(monkeypatch: pytest.MonkeyPatch, place: Path, error: Exception | None = None, check: bool = False) -> Any:
    """Restore with hosts and a transfer of the test, which ends with the error; return the lines of the file."""

    def transfer(say: Any) -> Any:
        say.show(RUNNING)
        if error is not None:
            raise error
        return {**dict.fromkeys(COUNTS, 0), **TOTALS, **RESULT, **LISTS}

    def session(*given: Any) -> Any:
        return SimpleNamespace(run=lambda **_known: transfer(given[4]), probe_step=lambda _side: {"do": "probe"})

    def runner(name: str) -> Any:
        return SimpleNamespace(name=name, variables={}, run=lambda *steps: [ANSWERS[step["do"]] for step in steps])

    monkeypatch.setattr(workflow, "Session", session)
    action: Any = object.__new__(restore_run.ActionModule)
    action._task, action.interruption = SimpleNamespace(check_mode=check, no_log=False, diff=False), Interruption()
    options = {
        **role_options("restore", {}),
        "request": RestoreRequest("vault", "/srv/backup", "web1", "data", "", "web1", "/srv/data"),
        "started_by": "ada@control1",
        "folder": str(place / "reports"),
        "dest": "/srv/data.back",
        "output": "normal",
        "progress_file": str(place / "progress.jsonl"),
    }
    if error is None:
        action.run_pair(runner("vault"), runner("web1"), options, lambda _line: None)
    else:
        with pytest.raises(type(error)):
            action.run_pair(runner("vault"), runner("web1"), options, lambda _line: None)
    path = place / "progress.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else None


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (None, [False]),
        (TransferError("no room"), [True]),
        (OSError(28, "no room"), [True]),
        (ControllerGone("gone"), []),
    ],
)
def test_the_progress_file_has_the_job_and_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception | None, ended: list[bool]
) -> None:
    lines = restore(monkeypatch, tmp_path, error)
    assert [one["event"] for one in lines] == ["progress", *["ended"] * len(ended)]
    assert {one["job"] for one in lines} == {"web1/data"}
    assert [one["failed"] for one in lines[1:]] == ended


def test_check_mode_writes_no_progress_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert restore(monkeypatch, tmp_path, check=True) is None


@pytest.mark.parametrize("error", [RuntimeError("a mistake"), OSError(28, "no room")])
def test_the_end_is_told_whatever_ends_the_restore(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    def fail(*_given: Any) -> Any:
        raise error

    got = tmp_path / "message.json"
    monkeypatch.setattr(restore_run.PairAction, "work", fail)
    monkeypatch.setattr(restore_run, "find_set_by_facts", lambda *_given: ())
    monkeypatch.setattr(restore_run, "refuse_facts", lambda *_given: "")
    monkeypatch.setattr(restore_run, "started_by", lambda _variables: "ada@control1")
    action: Any = object.__new__(restore_run.ActionModule)
    action._task, action._templar = SimpleNamespace(check_mode=False, no_log=True), SimpleNamespace(template=str)
    options = {
        "request": vars(RestoreRequest("vault", "/srv/backup", "web1", "data", "", "web1", "/srv/data")),
        "only_request": False,
        "report_dir": str(tmp_path / "reports"),
        "notify": [{"command": ["/bin/sh", "-c", f"cat > '{got}'"], "when": ["success", "failure"]}],
    }
    try:
        result = action.work(options, {"inventory_hostname": "web1"})
    except RuntimeError:
        result = {"failed": True}
    told = json.loads(got.read_text())
    assert result["failed"] and told["event"] == "failure" and told["jobs"] == ["web1/data"]
    assert told["failures"][0]["reason"].rstrip(".").startswith(("a mistake", "no room", str(tmp_path)))
