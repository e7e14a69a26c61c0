# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module that writes network files, as Ansible runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network.checkpoint import Checkpoint
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.test_checkpoint import request


@pytest.mark.parametrize("is_armed", [True, False])
def test_files_are_written_only_while_the_way_back_is_armed(tmp_path, monkeypatch, is_armed):
    """A control node that is slow writes after the host has reverted, and nothing would put the file back."""
    root = str(tmp_path / "root")
    one, file = Checkpoint("one", root), tmp_path / "eth0.network"
    one.create()
    if is_armed:
        one.write_request(request())
    arguments = {
        "files": [{"path": str(file), "content": "x"}],
        "checkpoint": "one",
        "_ansible_remote_tmp": str(tmp_path),
    }
    program = (
        "from ansible_collections.longhaul.fleet.plugins.modules import nic_config; from functools import partial; "
        f"nic_config.Checkpoint = partial(nic_config.Checkpoint, root={root!r}); nic_config.main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    result = json.loads(ended.stdout)
    assert file.exists() == is_armed == bool(result.get("changed")), ended
    assert is_armed or "nothing was changed: no checkpoint one was ever armed" in result["msg"]


def test_a_plan_changes_nothing_and_says_why_nothing_can_be_done(tmp_path):
    arguments = {
        "state": "planned",
        "links": [{"name": "no-such-link", "mtu": 9000}],
        "tcp": {"speed": 10000},
        "_ansible_remote_tmp": str(tmp_path),
    }
    program = "from ansible_collections.longhaul.fleet.plugins.modules import nic_config; nic_config.main()"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    result = json.loads(ended.stdout)
    assert "no-such-link is not there" in result["problems"][0] and not result["changed"]
    assert result["files"] == result["apply"] == result["changed_paths"] == result["live"] == []
    assert "net.core.rmem_max = 268435456" in result["tcp"]["content"]
