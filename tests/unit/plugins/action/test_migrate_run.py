# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a run of migrations whose report cannot be made."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.action import migrate_run

RECORD: Any = {
    "name": "data",
    "dest_host": "new1",
    "changed": False,
    "left": False,
    "failure": {},
    "switched": False,
    "totals": {},
}


def test_the_end_is_told_though_a_state_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_store: Any) -> Any:
        raise ValueError("state of job data: it is no JSON")

    monkeypatch.setattr(migrate_run, "states_in", refuse)
    got = tmp_path / "message.json"
    action: Any = object.__new__(migrate_run.ActionModule)
    action.variables, action._task = {"groups": {}}, SimpleNamespace(diff=False)
    options = {
        "part": "report",
        "folder": str(tmp_path / "reports"),
        "run_id": "1",
        "jobs": [{"name": "data"}],
        "records": [RECORD],
        "phase": "sync",
        "back": [],
        "allow_delete": [],
        "textfile": "",
        "notify": [{"command": ["/bin/sh", "-c", f"cat > '{got}'"], "when": ["success", "failure"]}],
    }
    with pytest.raises(ValueError, match="no JSON"):
        action.conduct(options, lambda _line: None, None, True)
    told = json.loads(got.read_text())
    assert told["event"] == "failure" and "no JSON" in told["failures"][0]["reason"] and told["jobs"] == ["data"]
